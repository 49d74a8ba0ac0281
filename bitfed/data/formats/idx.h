#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/data/dataset.h"

namespace bitfed {

// The IDX format of MNIST: a big-endian magic number that encodes the type of the values and the number of
// dimensions, the dimensions, then the values. Compressed (gzip) or plain; `name` is for error messages. The
// counts in the header must agree with the size of the data.
struct IdxImages {
  size_t count = 0;
  size_t height = 0;
  size_t width = 0;
  std::vector<uint8_t> pixels;
};

IdxImages parse_idx_images(std::span<const uint8_t> bytes, std::string_view name);
std::vector<uint8_t> parse_idx_labels(std::span<const uint8_t> bytes, std::string_view name);

// Loads train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
// t10k-labels-idx1-ubyte of `folder`, each with or without .gz.
DataSplit load_idx(const std::filesystem::path& folder, const std::string& name,
                   const std::vector<std::string>& class_names);

}  // namespace bitfed
