#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/data/dataset.h"

namespace bitfed {

// A file of a data set as its publisher offers it.
struct DownloadFile {
  std::string url;
  std::string md5;  // as published; empty where only sha256 is known
  std::string sha256;
  std::string saved_as;  // relative to the data folder; an archive (.tar.gz) is unpacked there
};

struct DatasetEntry {
  std::string name;
  std::string description;                   // one line
  std::string licence;                       // one line; shown before a download
  std::string how_to_get;                    // one line for the error when files are missing
  std::vector<std::string> files;            // relative to a data folder; a .gz may also be there unpacked
  std::vector<DownloadFile> downloads;       // empty: cannot be fetched
  std::vector<float> pixel_mean, pixel_std;  // of images, see Dataset; empty: the recipe must give them
  // folder: contains `files`; data: the recipe's [data] table, from which a loader reads its own keys; seed:
  // the recipe's.
  DataSplit (*load)(const std::filesystem::path& folder, const Config& data, uint64_t seed) = nullptr;

  bool is_generated() const { return files.empty(); }
};

// The one list of built-in data sets, in the order they are shown.
const std::vector<DatasetEntry>& datasets();

// The folders that are searched for data, in order: `data_dir` if given, $BITFED_DATA, ./data,
// ~/.local/share/bitfed, /usr/share/datasets.
std::vector<std::filesystem::path> data_search_path(const std::string& data_dir);

// The entry of that name. Unknown names are an input_error that suggests the nearest.
const DatasetEntry& find_entry(const std::string& name);

// Whether `folder` holds all files of the entry; a generated data set has no files.
bool has_files(const DatasetEntry& entry, const std::filesystem::path& folder);

// The first folder of the search path that holds the data set.
std::optional<std::filesystem::path> find_dataset(const DatasetEntry& entry, const std::string& data_dir);

// Loads a built-in data set by name, with default options and seed 0. Missing files are an input_error that
// names the searched folders and how to get the data; an unknown name is an input_error that suggests the
// nearest.
DataSplit load_dataset(const std::string& name, const std::string& data_dir);

// Whether a recipe's [data] table names files or a folder rather than a built-in set.
bool names_files(const Config& data);

// Loads what a recipe's [data] table names: a built-in set (name = "mnist"), a CSV file (file =
// "readings.csv", label = "activity", person = "subject", ignore = "device", and how it is split, see
// split_table.h), or images and arrays (own_data.h). A file that does not exist as written is looked up on
// the search path. Random draws depend only on the seed.
DataSplit load_data(const Config& data, const std::string& data_dir, uint64_t seed);

// The same without images and arrays of one's own: their readers would double the size of a device's program.
DataSplit load_device_data(const Config& data, const std::string& data_dir, uint64_t seed);

// The file or folder as written if it exists, else the first on the search path; empty: there is none.
std::optional<std::filesystem::path> search_data_file(const std::string& file, const std::string& data_dir);

// The same; `where` names the recipe's key in the error if there is none.
std::filesystem::path find_data_file(const std::string& file, const std::string& where,
                                     const std::string& data_dir);

// Adds the notes that apply to any data set: rows left out, classes that no client can learn.
DataSplit with_notes(DataSplit split);

}  // namespace bitfed
