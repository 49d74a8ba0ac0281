#include "bitfed/data/catalog/catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/data/catalog/split_table.h"
#include "bitfed/data/formats/csv.h"
#include "bitfed/data/pixel_statistics.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool has_file(const fs::path& folder, const std::string& file) {
  std::error_code code;
  if (fs::exists(folder / file, code)) return true;
  return file.ends_with(".gz") && fs::exists(folder / file.substr(0, file.size() - 3), code);
}

// " (DIR has some of its files, but not FILE)" for the first folder that holds only some of the files, else
// "".
std::string incomplete(const DatasetEntry& entry, const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    std::string missing;
    bool some = false;
    for (const std::string& file : entry.files) {
      if (has_file(folder, file)) {
        some = true;
      } else if (missing.empty()) {
        missing = file;
      }
    }
    if (some) return fmt::format(" ({} has some of its files, but not {})", folder.string(), missing);
  }
  return "";
}

std::string listed(const std::vector<fs::path>& folders) {
  std::vector<std::string> names;
  for (const fs::path& folder : folders) names.push_back(folder.string());
  return joined(names);
}

DataSplit load_table(const Config& data, const std::string& data_dir, uint64_t seed) {
  const std::string file = data.required_string("file");
  CsvOptions options;
  options.label = data.required_string("label");
  options.person = data.text("person", "");
  options.ignore = split_names(data.text("ignore", ""));
  const SplitSpec split = read_split(data, {});
  return split_table(load_csv(find_data_file(file, data.where("file"), data_dir), options), split, seed);
}

DataSplit load_entry(const DatasetEntry& entry, const Config& data, const std::string& data_dir,
                     uint64_t seed) {
  if (const auto folder = find_dataset(entry, data_dir)) {
    DataSplit split = entry.load(*folder, data, seed);
    if (split.train.is_table()) return split;
    for (Dataset* part : {&split.train, &split.test}) {
      part->pixel_mean = entry.pixel_mean;
      part->pixel_std = entry.pixel_std;
      read_pixel_statistics(data, part);
    }
    return split;
  }
  const std::vector<fs::path> folders = data_search_path(data_dir);
  throw input_error("data set '{}' not found: looked for {} in {}{}; {}", entry.name, entry.files.front(),
                    listed(folders), incomplete(entry, folders), entry.how_to_get);
}

}  // namespace

std::vector<fs::path> data_search_path(const std::string& data_dir) {
  std::vector<fs::path> folders;
  if (!data_dir.empty()) folders.emplace_back(data_dir);
  if (const std::string data = environment("BITFED_DATA"); !data.empty()) folders.emplace_back(data);
  folders.emplace_back("data");
  if (const std::string home = environment("HOME"); !home.empty()) {
    folders.push_back(fs::path(home) / ".local/share/bitfed");
  }
  folders.emplace_back("/usr/share/datasets");
  return folders;
}

std::optional<fs::path> search_data_file(const std::string& file, const std::string& data_dir) {
  std::error_code code;
  if (fs::exists(file, code)) return file;
  if (fs::path(file).is_absolute()) return std::nullopt;
  for (const fs::path& folder : data_search_path(data_dir)) {
    if (fs::exists(folder / file, code)) return folder / file;
  }
  return std::nullopt;
}

fs::path find_data_file(const std::string& file, const std::string& where, const std::string& data_dir) {
  if (const auto found = search_data_file(file, data_dir)) return *found;
  throw input_error("{}: no file {}; looked in the current folder and in {}", where, file,
                    listed(data_search_path(data_dir)));
}

// Adds the notes that apply to any data set.
DataSplit with_notes(DataSplit split) {
  if (const size_t dropped = split.train.dropped_rows; dropped > 0) {
    split.notes.push_back(dropped == 1 ? "1 row with an empty cell was left out"
                                       : fmt::format("{} rows with empty cells were left out", dropped));
  }
  std::vector<bool> trained(split.train.class_count());
  std::vector<bool> tested(split.train.class_count());
  for (const uint16_t label : split.train.labels) trained[label] = true;
  for (const uint16_t label : split.test.labels) tested[label] = true;
  constexpr size_t kMostNamed = 5;
  size_t unlearnt = 0;
  for (size_t label = 0; label < trained.size(); ++label) {
    if (trained[label] || !tested[label] || ++unlearnt > kMostNamed) continue;
    split.notes.push_back(fmt::format("class '{}' is only in the test rows: no client can learn it",
                                      split.train.class_names[label]));
  }
  if (unlearnt > kMostNamed)
    split.notes.push_back(fmt::format("{} more classes are only in the test rows", unlearnt - kMostNamed));
  return split;
}

const DatasetEntry& find_entry(const std::string& name) {
  std::vector<std::string> known;
  for (const DatasetEntry& entry : datasets()) {
    if (entry.name == name) return entry;
    known.push_back(entry.name);
  }
  if (fs::path(name).has_extension() || name.find('/') != std::string::npos)
    throw input_error("{}: no such file, and no data set has this name", name);
  throw input_error("unknown data set '{}'{}", name, suggestion(name, known));
}

bool has_files(const DatasetEntry& entry, const fs::path& folder) {
  for (const std::string& file : entry.files) {
    if (!has_file(folder, file)) return false;
  }
  return true;
}

std::optional<fs::path> find_dataset(const DatasetEntry& entry, const std::string& data_dir) {
  for (const fs::path& folder : data_search_path(data_dir)) {
    if (has_files(entry, folder)) return folder;
  }
  return std::nullopt;
}

DataSplit load_dataset(const std::string& name, const std::string& data_dir) {
  return with_notes(load_entry(find_entry(name), Config::parse("", name), data_dir, 0));
}

bool names_files(const Config& data) {
  return data.has("file") || data.has("folder");
}

DataSplit load_device_data(const Config& data, const std::string& data_dir, uint64_t seed) {
  const bool named = data.has("name");
  if (named == names_files(data)) {
    throw input_error(
        "{}: expected either name (a built-in data set) or file or folder (data of one's own){}",
        data.where("name"), named ? ", found both" : ", found neither");
  }
  if (!named) return with_notes(load_table(data, data_dir, seed));
  const std::string name = data.required_string("name");
  try {
    find_entry(name);
  } catch (const Error& error) {
    throw input_error("{}: {}", data.where("name"), error.what());
  }
  return with_notes(load_entry(find_entry(name), data, data_dir, seed));
}

}  // namespace bitfed
