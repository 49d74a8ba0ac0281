#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "bitfed/base/config.h"
#include "bitfed/data/dataset.h"

namespace bitfed {

// Where a device has its samples: exactly one of `data` and `part`.
struct OwnData {
  std::filesystem::path data;    // a CSV file with the recipe's columns; or a folder that holds the recipe's
                                 // built-in data set with the device's own images in it
  std::optional<uint32_t> part;  // that part of the recipe's data, dealt as bitfed run deals it
  std::string data_dir;          // where to look for the recipe's data first
};

// The samples that the device trains on, as `prototype` has them.
Dataset load_own_samples(const OwnData& own, const Config& recipe, uint64_t seed, const Dataset& prototype);

}  // namespace bitfed
