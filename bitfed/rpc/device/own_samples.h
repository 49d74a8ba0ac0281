#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "bitfed/base/config.h"
#include "bitfed/data/dataset.h"

namespace bitfed {

// Readers of images and arrays, with their decoders. The program for devices has none; bitfed join has
// load_data and load_own_training (data/catalog).
struct ImageReaders {
  std::function<DataSplit(const Config& data, const std::string& data_dir, uint64_t seed)> recipe_data;
  std::function<Dataset(const Config& data, const std::filesystem::path& path,
                        const std::filesystem::path& labels)>
      own;
};

// Where a device has its samples: exactly one of `data` and `part`.
struct OwnData {
  std::filesystem::path data;    // a CSV file with the recipe's columns; a folder that holds the recipe's
                                 // built-in data set with the device's own images in it; or, where there are
                                 // readers, a folder of images or a file of arrays
  std::filesystem::path labels;  // of a file that needs them
  std::optional<uint32_t> part;  // that part of the recipe's data, dealt as bitfed run deals it
  std::string data_dir;          // where to look for the recipe's data first
  ImageReaders readers = {};
};

// The samples that the device trains on, as `prototype` has them.
Dataset load_own_samples(const OwnData& own, const Config& recipe, uint64_t seed, const Dataset& prototype);

}  // namespace bitfed
