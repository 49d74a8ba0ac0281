#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/catalog/split_table.h"
#include "bitfed/data/catalog/synthetic_health.h"
#include "bitfed/data/formats/cifar.h"
#include "bitfed/data/formats/csv.h"
#include "bitfed/data/formats/idx.h"
#include "bitfed/data/formats/svhn.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

DataSplit load_mnist(const fs::path& folder, const Config& /*data*/, uint64_t /*seed*/) {
  return load_idx(folder / "mnist", "mnist", {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

DataSplit load_fashion_mnist(const fs::path& folder, const Config& /*data*/, uint64_t /*seed*/) {
  return load_idx(folder / "fashion-mnist", "fashion-mnist",
                  {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
                   "Ankle boot"});
}

DataSplit load_cifar10_batches(const fs::path& folder, const Config& /*data*/, uint64_t /*seed*/) {
  return load_cifar10(folder / "cifar-10-batches-bin");
}
DataSplit load_cifar100_binary(const fs::path& folder, const Config& /*data*/, uint64_t /*seed*/) {
  return load_cifar100(folder / "cifar-100-binary");
}
DataSplit load_svhn_cropped(const fs::path& folder, const Config& /*data*/, uint64_t /*seed*/) {
  return load_svhn(folder / "svhn");
}

// Every person did the protocol twice: the second recording is for testing.
DataSplit load_hapt14(const fs::path& folder, const Config& data, uint64_t seed) {
  const SplitSpec split = read_split(data, {.kind = "time", .test_fraction = 0.5});
  const CsvOptions options{.label = "activity", .person = "subject", .ignore = {}};
  return split_table(load_csv(folder / "health/hapt14.csv", options), split, seed);
}

// Every person did the activities in sequence, the hardest last, so each activity is split by itself.
DataSplit load_watch(const fs::path& folder, const Config& data, uint64_t seed) {
  const SplitSpec split = read_split(data, {.kind = "time-per-class", .test_fraction = 0.3});
  const CsvOptions options{
      .label = "activity", .person = "age,gender,height,weight", .ignore = {"", "X1", "device"}};
  return split_table(load_csv(folder / "health/watch.csv", options), split, seed);
}

DataSplit load_synthetic_health(const fs::path& /*folder*/, const Config& data, uint64_t seed) {
  return make_synthetic_health(read_synthetic_health(data), seed);
}

std::vector<std::string> idx_files(const std::string& folder) {
  return {folder + "/train-images-idx3-ubyte.gz", folder + "/train-labels-idx1-ubyte.gz",
          folder + "/t10k-images-idx3-ubyte.gz", folder + "/t10k-labels-idx1-ubyte.gz"};
}

DatasetEntry mnist() {
  DatasetEntry entry;
  entry.name = "mnist";
  entry.description = "handwritten digits, 28x28 grey, 10 classes, 60000 + 10000";
  entry.licence = "CC BY-SA 3.0; Y. LeCun, C. Cortes, C. J. C. Burges";
  entry.how_to_get = "get it with: bitfed data fetch mnist";
  entry.files = idx_files("mnist");
  const std::string home = "https://ossci-datasets.s3.amazonaws.com/";
  const auto add = [&](size_t file, const char* md5, const char* sha256) {
    entry.downloads.push_back({home + entry.files[file], md5, sha256, entry.files[file]});
  };
  add(0, "f68b3c2dcbeaaa9fbdd348bbdeb94873",
      "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609");
  add(1, "d53e105ee54ea40749a09fcbcd1e9432",
      "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c");
  add(2, "9fb629c4189551a2d022fa330f9573f3",
      "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6");
  add(3, "ec29112dd5afa0611ce80d1b7f02629c",
      "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6");
  entry.pixel_mean = {0.1307f};
  entry.pixel_std = {0.3081f};
  entry.load = load_mnist;
  return entry;
}

DatasetEntry fashion_mnist() {
  DatasetEntry entry;
  entry.name = "fashion-mnist";
  entry.description = "articles of clothing, 28x28 grey, 10 classes, 60000 + 10000";
  entry.licence = "MIT; Zalando SE";
  entry.how_to_get =
      "install Debian's package dataset-fashion-mnist (/usr/share/datasets/fashion-mnist), or: "
      "bitfed data fetch fashion-mnist";
  entry.files = idx_files("fashion-mnist");
  // The checksums that the authors' repository publishes; Debian compresses the same content again.
  const std::string home = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/";
  const auto add = [&](size_t file, const char* md5) {
    const std::string name = fs::path(entry.files[file]).filename().string();
    entry.downloads.push_back({home + name, md5, "", entry.files[file]});
  };
  add(0, "8d4fb7e6c68d591d4c3dfef9ec88bf0d");
  add(1, "25c81989df183df01b3e8a0aad5dffbe");
  add(2, "bef4ecab320f06d8554ea6380940ec79");
  add(3, "bb300cfdad3c16e7a12a480ee83cd310");
  entry.pixel_mean = {0.2860f};
  entry.pixel_std = {0.3530f};
  entry.load = load_fashion_mnist;
  return entry;
}

DatasetEntry cifar10() {
  DatasetEntry entry;
  entry.name = "cifar10";
  entry.description = "photographs, 32x32 colour, 10 classes, 50000 + 10000";
  entry.licence =
      "no licence stated; cite A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009";
  entry.how_to_get = "get it with: bitfed data fetch cifar10";
  for (int batch = 1; batch <= 5; ++batch) {
    entry.files.push_back("cifar-10-batches-bin/data_batch_" + std::to_string(batch) + ".bin");
  }
  entry.files.push_back("cifar-10-batches-bin/test_batch.bin");
  entry.downloads = {{"https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
                      "c32a1d4ab5d03f1284b67883e8d87530", "", "cifar-10-binary.tar.gz"}};
  // ImageNet's statistics, which the papers use for CIFAR.
  entry.pixel_mean = {0.485f, 0.456f, 0.406f};
  entry.pixel_std = {0.229f, 0.224f, 0.225f};
  entry.load = load_cifar10_batches;
  return entry;
}

DatasetEntry cifar100() {
  DatasetEntry entry = cifar10();
  entry.name = "cifar100";
  entry.description = "photographs, 32x32 colour, 100 classes, 50000 + 10000";
  entry.how_to_get = "get it with: bitfed data fetch cifar100";
  entry.files = {"cifar-100-binary/train.bin", "cifar-100-binary/test.bin"};
  entry.downloads = {{"https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
                      "03b5dce01913d631647c71ecec9e9cb8", "", "cifar-100-binary.tar.gz"}};
  // ImageNet's statistics, which the papers use for CIFAR.
  entry.pixel_mean = {0.485f, 0.456f, 0.406f};
  entry.pixel_std = {0.229f, 0.224f, 0.225f};
  entry.load = load_cifar100_binary;
  return entry;
}

DatasetEntry svhn() {
  DatasetEntry entry;
  entry.name = "svhn";
  entry.description = "house numbers, cropped digits, 32x32 colour, 10 classes, 73257 + 26032";
  entry.licence = "for non-commercial use only; Y. Netzer et al., Stanford University and Google";
  entry.how_to_get = "get it with: bitfed data fetch svhn (non-commercial use only)";
  entry.files = {"svhn/train_32x32.mat", "svhn/test_32x32.mat"};
  const std::string home = "http://ufldl.stanford.edu/housenumbers/";
  entry.downloads = {
      {home + "train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", "", entry.files[0]},
      {home + "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", "", entry.files[1]},
  };
  entry.pixel_mean = {0.4496f, 0.4496f, 0.4496f};
  entry.pixel_std = {0.1995f, 0.1995f, 0.1995f};
  entry.load = load_svhn_cropped;
  return entry;
}

DatasetEntry hapt14() {
  DatasetEntry entry;
  entry.name = "hapt14";
  entry.description = "phone at the waist, 14 features per window, 6 activities, 30 people";
  entry.licence = "CC BY 4.0; J. Reyes-Ortiz et al., UCI Machine Learning Repository";
  entry.how_to_get =
      "put it at health/hapt14.csv in a data folder: means and standard deviations of the windows of UCI's "
      "Smartphone-Based Recognition of Human Activities and Postural Transitions, with the columns "
      "subject and activity";
  entry.files = {"health/hapt14.csv"};
  entry.load = load_hapt14;
  return entry;
}

DatasetEntry watch() {
  DatasetEntry entry;
  entry.name = "watch";
  entry.description = "Apple Watch and Fitbit, 12 features per minute, 6 activities, 49 people";
  entry.licence = "CC0 1.0; D. Fuller, Harvard Dataverse, doi:10.7910/DVN/ZS2Z2J";
  entry.how_to_get = "put aw_fb_data.csv of doi:10.7910/DVN/ZS2Z2J at health/watch.csv in a data folder";
  entry.files = {"health/watch.csv"};
  entry.load = load_watch;
  return entry;
}

DatasetEntry synthetic_health() {
  DatasetEntry entry;
  entry.name = "synthetic-health";
  entry.description = "generated wearables, 14 attributes, 6 activities, 20 people of 100000 + 30000 points";
  entry.licence = "Apache-2.0; generated by bitfed";
  entry.how_to_get = "it is generated from the recipe's seed and needs no files";
  entry.load = load_synthetic_health;
  return entry;
}

}  // namespace

const std::vector<DatasetEntry>& datasets() {
  static const std::vector<DatasetEntry> kEntries = {mnist(), fashion_mnist(), cifar10(), cifar100(),
                                                     svhn(),  hapt14(),        watch(),   synthetic_health()};
  return kEntries;
}

}  // namespace bitfed
