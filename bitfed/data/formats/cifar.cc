#include "bitfed/data/formats/cifar.h"

#include <string>
#include <vector>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSide = 32;
constexpr size_t kChannels = 3;
constexpr size_t kPlane = kSide * kSide;
constexpr size_t kImageBytes = kPlane * kChannels;

const std::vector<std::string> kClasses10 = {"airplane", "automobile", "bird",  "cat",  "deer",
                                             "dog",      "frog",       "horse", "ship", "truck"};

// The fine labels, as fine_label_names.txt lists them.
const std::vector<std::string> kClasses100 = {
    "apple",      "aquarium_fish", "baby",         "bear",       "beaver",      "bed",         "bee",
    "beetle",     "bicycle",       "bottle",       "bowl",       "boy",         "bridge",      "bus",
    "butterfly",  "camel",         "can",          "castle",     "caterpillar", "cattle",      "chair",
    "chimpanzee", "clock",         "cloud",        "cockroach",  "couch",       "crab",        "crocodile",
    "cup",        "dinosaur",      "dolphin",      "elephant",   "flatfish",    "forest",      "fox",
    "girl",       "hamster",       "house",        "kangaroo",   "keyboard",    "lamp",        "lawn_mower",
    "leopard",    "lion",          "lizard",       "lobster",    "man",         "maple_tree",  "motorcycle",
    "mountain",   "mouse",         "mushroom",     "oak_tree",   "orange",      "orchid",      "otter",
    "palm_tree",  "pear",          "pickup_truck", "pine_tree",  "plain",       "plate",       "poppy",
    "porcupine",  "possum",        "rabbit",       "raccoon",    "ray",         "road",        "rocket",
    "rose",       "sea",           "seal",         "shark",      "shrew",       "skunk",       "skyscraper",
    "snail",      "snake",         "spider",       "squirrel",   "streetcar",   "sunflower",   "sweet_pepper",
    "table",      "tank",          "telephone",    "television", "tiger",       "tractor",     "train",
    "trout",      "tulip",         "turtle",       "wardrobe",   "whale",       "willow_tree", "wolf",
    "woman",      "worm"};

size_t label_bytes(CifarKind kind) {
  return kind == CifarKind::kCifar10 ? 1 : 2;
}

Dataset empty_dataset(CifarKind kind) {
  Dataset dataset;
  dataset.name = kind == CifarKind::kCifar10 ? "cifar10" : "cifar100";
  dataset.height = kSide;
  dataset.width = kSide;
  dataset.channels = kChannels;
  dataset.class_names = kind == CifarKind::kCifar10 ? kClasses10 : kClasses100;
  return dataset;
}

// From CHW (channel planes) to HWC (interleaved).
void interleave(const uint8_t* planes, size_t plane, size_t channels, uint8_t* pixels) {
  for (size_t pixel = 0; pixel < plane; ++pixel) {
    for (size_t channel = 0; channel < channels; ++channel) {
      pixels[pixel * channels + channel] = planes[channel * plane + pixel];
    }
  }
}

Dataset load_files(const fs::path& folder, CifarKind kind, const std::vector<std::string>& names) {
  Dataset dataset = empty_dataset(kind);
  for (const std::string& name : names) {
    const fs::path path = folder / name;
    parse_cifar(read_file(path), path.string(), kind, dataset);
  }
  return dataset;
}

}  // namespace

void parse_cifar(std::span<const uint8_t> bytes, std::string_view name, CifarKind kind, Dataset& dataset) {
  const size_t record = label_bytes(kind) + kImageBytes;
  if (bytes.empty() || bytes.size() % record != 0) {
    throw input_error("{}: {} bytes, expected a multiple of {} (one image each)", name, bytes.size(), record);
  }
  if (dataset.class_names.empty()) dataset = empty_dataset(kind);
  const size_t count = bytes.size() / record;
  const size_t before = dataset.size();
  dataset.pixels.resize((before + count) * kImageBytes);
  dataset.labels.resize(before + count);
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* item = bytes.data() + i * record;
    const uint8_t label = item[label_bytes(kind) - 1];
    if (label >= dataset.class_count()) {
      throw input_error("{}: label {} of image {}, expected 0 to {}", name, label, i,
                        dataset.class_count() - 1);
    }
    dataset.labels[before + i] = label;
    interleave(item + label_bytes(kind), kPlane, kChannels,
               dataset.pixels.own().data() + (before + i) * kImageBytes);
  }
}

NamedSamples parse_records(std::span<const uint8_t> bytes, const std::string& name,
                           const std::vector<size_t>& image, size_t label_bytes) {
  const size_t plane = image[0] * image[1];
  const size_t image_bytes = plane * image[2];
  const size_t record = label_bytes + image_bytes;
  if (bytes.empty() || bytes.size() % record != 0) {
    throw input_error("{}: {} bytes, expected a multiple of {}: records of {} for the label and {} x {} x {}",
                      name, bytes.size(), record, label_bytes, image[0], image[1], image[2]);
  }
  NamedSamples samples;
  samples.data.name = name;
  samples.data.height = image[0];
  samples.data.width = image[1];
  samples.data.channels = image[2];
  const size_t count = bytes.size() / record;
  samples.data.pixels.resize(count * image_bytes);
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* item = bytes.data() + i * record;
    samples.classes.push_back(std::to_string(item[label_bytes - 1]));
    interleave(item + label_bytes, plane, image[2], samples.data.pixels.own().data() + i * image_bytes);
  }
  return samples;
}

DataSplit load_cifar10(const fs::path& folder) {
  const std::vector<std::string> batches = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                            "data_batch_4.bin", "data_batch_5.bin"};
  return {load_files(folder, CifarKind::kCifar10, batches),
          load_files(folder, CifarKind::kCifar10, {"test_batch.bin"})};
}

DataSplit load_cifar100(const fs::path& folder) {
  return {load_files(folder, CifarKind::kCifar100, {"train.bin"}),
          load_files(folder, CifarKind::kCifar100, {"test.bin"})};
}

}  // namespace bitfed
