#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "bitfed/data/dataset.h"

namespace bitfed {

// The cropped digits of Street View House Numbers ("format 2"): a MATLAB file with the variables X (32 x 32 x
// 3 x N pixels) and y (N labels; 10 means the digit 0).
Dataset parse_svhn(std::span<const uint8_t> bytes, std::string_view name);

DataSplit load_svhn(const std::filesystem::path& folder);  // train_32x32.mat, test_32x32.mat

}  // namespace bitfed
