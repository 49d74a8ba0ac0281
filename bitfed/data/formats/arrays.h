#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/data/formats/npy.h"
#include "bitfed/data/named_samples.h"

namespace bitfed {

// Samples from arrays. `x` with 3 dimensions is grey images, with 4 images of 1 or 3 channels (channels last,
// or first as PyTorch has them), with 2 a table, or images of the shape `image` = {height, width, channels}
// if given. Pixels are bytes, whole numbers from 0 to 255, or floats from 0 to 1. `y` and `person` are
// numbers or strings. `name` is for error messages.
struct ArraySet {
  const NpyArray* x = nullptr;
  const NpyArray* y = nullptr;
  const NpyArray* person = nullptr;   // may be null
  const NpyArray* columns = nullptr;  // the names of a table's columns; may be null
};
NamedSamples samples_of_arrays(const ArraySet& arrays, const std::vector<size_t>& image,
                               const std::string& name);

// Bytes from floats: 0..1 is scaled to 0..255 and rounded. Anything else is an input_error with `name`.
std::vector<uint8_t> pixels_of(std::span<const float> values, const std::string& name);

// {height, width, channels} is an image that can be; otherwise an input_error with `name`.
void check_image_shape(const std::vector<size_t>& image, const std::string& name);

struct NpzParts {
  NamedSamples train;
  std::optional<NamedSamples> test;  // where the file has x_test and y_test
};

// An .npz with x and y, and optionally person, columns and class_names; or with x_train, y_train, x_test and
// y_test, as Keras has them.
NpzParts load_npz(const std::filesystem::path& path, const std::vector<size_t>& image);

}  // namespace bitfed
