#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bitfed/data/dataset.h"

namespace bitfed {

// The shape of a sample: an image, or a row of a table.
struct SampleShape {
  size_t height = 0;
  size_t width = 0;
  size_t channels = 0;
  size_t columns = 0;

  bool is_table() const { return columns > 0; }
  size_t count() const { return is_table() ? columns : height * width * channels; }
  bool operator==(const SampleShape&) const = default;
};

SampleShape shape_of(const Dataset& dataset);

// A view of contiguous samples without labels, in a Dataset's layout: pixels of images or values of rows; the
// other pointer is null.
struct Samples {
  const uint8_t* pixels = nullptr;
  const float* values = nullptr;
  size_t count = 0;

  Samples part(const SampleShape& shape, size_t begin, size_t samples) const {
    if (values != nullptr) return {nullptr, values + begin * shape.count(), samples};
    return {pixels + begin * shape.count(), nullptr, samples};
  }
};

Samples samples_of(const Dataset& dataset);

// A data set for samples of this shape, without samples.
Dataset empty_dataset(const std::string& name, const SampleShape& shape);

}  // namespace bitfed
