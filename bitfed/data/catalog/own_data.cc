#include "bitfed/data/catalog/own_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/catalog/split_table.h"
#include "bitfed/data/formats/arrays.h"
#include "bitfed/data/formats/cifar.h"
#include "bitfed/data/formats/idx.h"
#include "bitfed/data/formats/image_folder.h"
#include "bitfed/data/formats/leaf.h"
#include "bitfed/data/named_samples.h"
#include "bitfed/data/pixel_statistics.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr double kTestFraction = 0.2;

const std::vector<std::string> kFormats = {"csv", "npz", "npy", "idx", "records", "leaf", "parquet"};

// By the end of the file's name.
std::string usual_format(const std::string& file) {
  std::string name = fs::path(file).filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  constexpr std::array<std::array<const char*, 2>, 8> kEndings = {{{".npz", "npz"},
                                                                   {".npy", "npy"},
                                                                   {".bin", "records"},
                                                                   {".json", "leaf"},
                                                                   {".parquet", "parquet"},
                                                                   {".idx", "idx"},
                                                                   {"-ubyte", "idx"},
                                                                   {".idx3", "idx"}}};
  for (const auto& [ending, format] : kEndings) {
    if (name.ends_with(ending)) return format;
  }
  return "csv";
}

// A string, or an array of strings; none where the key is absent.
std::vector<std::string> file_names(const Config& data, const char* key) {
  if (!data.has(key)) return {};
  std::vector<std::string> names =
      data.is_string(key) ? std::vector<std::string>{data.required_string(key)} : data.texts(key);
  if (names.empty()) throw input_error("{}: found no file", data.where(key));
  return names;
}

std::string format_of(const Config& data) {
  const std::vector<std::string> files = file_names(data, "file");
  if (data.has("format")) return data.choice("format", "csv", kFormats);
  return usual_format(files.front());
}

// What the keys of [data] say about the samples, apart from where they are.
struct Keys {
  std::vector<size_t> image;  // {height, width, channels}; empty: not given
  size_t label_bytes = 1;
  ImageFolderOptions folder;
};

std::vector<size_t> sides(const Config& data, const char* key, size_t count) {
  if (!data.has(key)) return {};
  const std::vector<int64_t> values = data.integers(key, {}, 1, 4096);
  if (values.size() != count)
    throw input_error("{}: found {} numbers, expected {}", data.where(key), values.size(), count);
  return {values.begin(), values.end()};
}

Keys read_keys(const Config& data, const std::string& format) {
  Keys keys;
  if (format == "npz" || format == "npy" || format == "records" || format == "leaf") {
    keys.image = sides(data, "image", 3);
    if (!keys.image.empty()) check_image_shape(keys.image, data.where("image"));
  }
  if (format == "records") {
    if (keys.image.empty()) keys.image = {32, 32, 3};
    keys.label_bytes = static_cast<size_t>(data.integer("label_bytes", 1, 1, 8));
  }
  return keys;
}

NamedSamples idx_samples(const fs::path& images_path, const fs::path& labels_path) {
  IdxImages images = parse_idx_images(read_file(images_path), images_path.string());
  const std::vector<uint8_t> labels = parse_idx_labels(read_file(labels_path), labels_path.string());
  if (labels.size() != images.count) {
    throw input_error("{}: {} labels, but {} holds {} images", labels_path.string(), labels.size(),
                      images_path.string(), images.count);
  }
  NamedSamples samples;
  samples.data.name = images_path.string();
  samples.data.height = images.height;
  samples.data.width = images.width;
  samples.data.channels = 1;
  samples.data.pixels = std::move(images.pixels);
  for (const uint8_t label : labels) samples.classes.push_back(std::to_string(label));
  return samples;
}

NamedSamples npy_samples(const fs::path& values, const fs::path& labels, const fs::path& people,
                         const Keys& keys) {
  const NpyArray x = parse_npy(read_file(values), values.string());
  const NpyArray y = parse_npy(read_file(labels), labels.string());
  std::optional<NpyArray> person;
  if (!people.empty()) person = parse_npy(read_file(people), people.string());
  return samples_of_arrays({&x, &y, person ? &*person : nullptr, nullptr}, keys.image, values.string());
}

[[noreturn]] void refuse_parquet(const std::string& file) {
  throw input_error(
      "{}: found Parquet, which the Python package reads (bitfed.run, with pyarrow) and the program does not; "
      "expected CSV or .npz: python3 -c \"import pandas; pandas.read_parquet('{}').to_csv('table.csv', "
      "index=False)\"",
      file, file);
}

// One file that holds samples and labels.
NamedSamples read_one(const std::string& format, const fs::path& path, const Keys& keys) {
  if (format == "parquet") refuse_parquet(path.string());
  if (format == "records") return parse_records(read_file(path), path.string(), keys.image, keys.label_bytes);
  if (format == "leaf") return parse_leaf(read_text_file(path), keys.image, path.string());
  throw input_error(
      "{}: found format {}, which holds no labels; expected a recipe that names samples and labels",
      path.string(), format);
}

struct Parts {
  NamedSamples train;
  std::optional<NamedSamples> test;
};

class FileReader {
 public:
  FileReader(const Config& data, const std::string& data_dir)
      : data_(data), data_dir_(data_dir), format_(format_of(data)), keys_(read_keys(data, format_)) {}

  Parts read() const {
    Parts parts;
    if (format_ == "npz") return read_npz();
    parts.train = read_part("file", "labels", "person");
    if (data_.has("test_file")) parts.test = read_part("test_file", "test_labels", "test_person");
    return parts;
  }

 private:
  fs::path find(const std::string& file, const char* key) const {
    return find_data_file(file, data_.where(key), data_dir_);
  }

  Parts read_npz() const {
    Parts parts;
    for (const std::string& file : file_names(data_, "file")) {
      NpzParts found = load_npz(find(file, "file"), keys_.image);
      append(&parts.train, std::move(found.train));
      if (found.test && !parts.test) parts.test.emplace();
      if (found.test) append(&*parts.test, *std::move(found.test));
    }
    if (!data_.has("test_file")) return parts;
    if (parts.test)
      throw input_error("{}: found beside a file that has x_test itself", data_.where("test_file"));
    parts.test.emplace();
    for (const std::string& file : file_names(data_, "test_file"))
      append(&*parts.test, load_npz(find(file, "test_file"), keys_.image).train);
    return parts;
  }

  // Samples, labels and people stand in one file, or in as many files each.
  NamedSamples read_part(const char* key, const char* labels_key, const char* person_key) const {
    const std::vector<std::string> files = file_names(data_, key);
    const bool has_pairs = format_ == "idx" || format_ == "npy";
    const std::vector<std::string> labels = has_pairs ? file_names(data_, labels_key) : files;
    const std::vector<std::string> people =
        format_ == "npy" ? file_names(data_, person_key) : std::vector<std::string>{};
    if (labels.size() != files.size()) {
      throw input_error("{}: found {} files, expected {}, one with the labels of each of {}",
                        data_.where(labels_key), labels.size(), files.size(), key);
    }
    if (!people.empty() && people.size() != files.size())
      throw input_error("{}: found {} files, expected {}", data_.where(person_key), people.size(),
                        files.size());
    NamedSamples samples;
    for (size_t i = 0; i < files.size(); ++i) {
      const fs::path path = find(files[i], key);
      if (format_ == "idx") {
        append(&samples, idx_samples(path, find(labels[i], labels_key)));
      } else if (format_ == "npy") {
        append(&samples, npy_samples(path, find(labels[i], labels_key),
                                     people.empty() ? fs::path() : find(people[i], person_key), keys_));
      } else {
        append(&samples, read_one(format_, path, keys_));
      }
    }
    return samples;
  }

  const Config& data_;
  const std::string& data_dir_;
  std::string format_;
  Keys keys_;
};

// Every .json of the folder.
NamedSamples leaf_folder(const fs::path& folder, const Keys& keys) {
  NamedSamples samples;
  for (const fs::path& path : entries_of(folder)) {
    if (path.extension() == ".json")
      append(&samples, parse_leaf(read_text_file(path), keys.image, path.string()));
  }
  return samples;
}

bool has_json(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) return false;
  const std::vector<fs::path> entries = entries_of(folder);
  return std::any_of(entries.begin(), entries.end(),
                     [](const fs::path& path) { return path.extension() == ".json"; });
}

// Whether the recipe's `person` says whose the samples are. A device's are its own.
enum class People { kNamed, kUnimportant };

ImageFolderOptions folder_options(const Config& data, const std::string& data_dir, People people) {
  ImageFolderOptions options;
  options.size = sides(data, "size", 2);
  if (data.has("channels")) {
    options.channels = static_cast<size_t>(data.integer("channels", 3, 1, 3));
    if (options.channels == 2)
      throw input_error("{}: found 2, expected 1 (grey) or 3", data.where("channels"));
  }
  if (people == People::kUnimportant || !data.has("person")) return options;
  const std::string person = data.required_string("person");
  options.person_folders = person == "folder";
  if (!options.person_folders) options.people = find_data_file(person, data.where("person"), data_dir);
  return options;
}

Parts read_folder(const Config& data, const fs::path& folder, const std::string& data_dir,
                  People people = People::kNamed) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) throw input_error("{}: expected a folder", folder.string());
  const ImageFolders folders = find_image_folders(folder);
  Parts parts;
  if (has_json(folders.train)) {
    const Keys keys = read_keys(data, "leaf");
    parts.train = leaf_folder(folders.train, keys);
    if (folders.test) parts.test = leaf_folder(*folders.test, keys);
    return parts;
  }
  const ImageFolderOptions options = folder_options(data, data_dir, people);
  if (is_tiny_imagenet(folder)) {
    if (people == People::kNamed && data.has("person"))
      throw input_error("{}: Tiny-ImageNet has no people", data.where("person"));
    TinyImagenet set = load_tiny_imagenet(folder, options);
    parts.train = std::move(set.train);
    parts.test = std::move(set.test);
    return parts;
  }
  parts.train = load_image_folder(folders.train, options);
  if (folders.test) parts.test = load_image_folder(*folders.test, options);
  return parts;
}

// A folder, or one file; `labels` in a file of their own where the format needs one.
Parts read_at(const Config& data, const fs::path& path, const fs::path& labels, People people) {
  if (fs::is_directory(path)) return read_folder(data, path, "", people);
  const std::string format = data.has("format") ? data.text("format", "") : usual_format(path.string());
  const Keys keys = read_keys(data, format);
  Parts parts;
  if (format == "npz") {
    NpzParts found = load_npz(path, keys.image);
    parts.train = std::move(found.train);
    parts.test = std::move(found.test);
  } else if (format == "idx" && !labels.empty()) {
    parts.train = idx_samples(path, labels);
  } else if (format == "npy" && !labels.empty()) {
    parts.train = npy_samples(path, labels, {}, keys);
  } else {
    parts.train = read_one(format, path, keys);
  }
  return parts;
}

std::string set_name(const fs::path& path) {
  fs::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
  if (name.extension() == ".gz") name = name.stem();
  return name.stem().string();
}

// Of a device's samples, which need not show every class: the recipe's names go with its labels in their
// order where all of them are there, and with classes that have these names already.
std::vector<std::string> own_class_names(const Config& data, const NamedSamples& samples) {
  const std::vector<std::string> given = data.texts("class_names");
  const std::set<std::string> found(samples.classes.begin(), samples.classes.end());
  const bool named = std::all_of(found.begin(), found.end(), [&](const std::string& name) {
    return std::find(given.begin(), given.end(), name) != given.end();
  });
  return !named && found.size() == given.size() ? given : samples.class_names;
}

// The first samples are for training.
DataSplit split_at(const Dataset& whole, size_t train_count) {
  std::vector<uint32_t> train(train_count);
  std::vector<uint32_t> test(whole.size() - train_count);
  for (uint32_t i = 0; i < train.size(); ++i) train[i] = i;
  for (uint32_t i = 0; i < test.size(); ++i) test[i] = static_cast<uint32_t>(train_count) + i;
  return {subset(whole, train), subset(whole, test)};
}

// Training and test samples together, so that both number the same classes and people.
template <typename ClassNames>
SamplesAt together(Parts parts, const std::string& name, const ClassNames& class_names) {
  SamplesAt samples;
  if (parts.test) {
    samples.train_count = parts.train.size();
    append(&parts.train, *std::move(parts.test));
  }
  const std::vector<std::string> names = class_names(parts.train);
  samples.all = numbered(std::move(parts.train), name, names);
  return samples;
}

}  // namespace

SplitSpec usual_split(const Dataset& whole) {
  return {whole.groups.empty() ? "stratified" : "random", kTestFraction};
}

bool is_csv(const Config& data) {
  return !data.has("folder") && data.has("file") && format_of(data) == "csv";
}

DataSplit load_own_data(const Config& data, const std::string& data_dir, uint64_t seed) {
  const bool is_folder = data.has("folder");
  if (is_folder && data.has("file"))
    throw input_error("{}: found beside file, expected one of the two", data.where("folder"));
  const fs::path folder =
      is_folder ? find_data_file(data.required_string("folder"), data.where("folder"), data_dir) : fs::path();
  Parts parts = is_folder ? read_folder(data, folder, data_dir) : FileReader(data, data_dir).read();
  const std::string name = set_name(is_folder ? folder : fs::path(file_names(data, "file").front()));
  const std::vector<std::string> given = data.texts("class_names");
  SamplesAt samples = together(std::move(parts), name, [&](const NamedSamples& all) {
    return given.empty() ? all.class_names : given;
  });
  DataSplit split = split_as(data, samples, seed);
  add_pixel_statistics(data, &split);
  return split;
}

DataSplit split_as(const Config& data, const SamplesAt& samples, uint64_t seed) {
  if (samples.train_count) return split_at(samples.all, *samples.train_count);
  return split_table(samples.all, read_split(data, usual_split(samples.all)), seed);
}

SamplesAt load_samples_at(const Config& data, const fs::path& path) {
  const auto with = [&](People people) {
    return together(read_at(data, path, {}, people), set_name(path),
                    [&](const NamedSamples& all) { return own_class_names(data, all); });
  };
  if (!data.has("person")) return with(People::kNamed);
  try {
    return with(People::kNamed);
  } catch (const Error&) {
    return with(People::kUnimportant);  // other samples than the recipe's may be nobody's that it knows
  }
}

Dataset load_own_training(const Config& data, const fs::path& path, const fs::path& labels) {
  NamedSamples train = read_at(data, path, labels, People::kUnimportant).train;
  train.people.clear();
  const std::vector<std::string> class_names = own_class_names(data, train);
  return numbered(std::move(train), path.string(), class_names);
}

}  // namespace bitfed
