#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bitfed/data/elements.h"

namespace bitfed {

// Labelled samples in memory: images of bytes, or a table of floats. Exactly one of `pixels` and `values` is
// filled. Invariant, guaranteed by loaders: the sizes agree and every label is below class_count().
struct Dataset {
  std::string name;

  // Images in the layout NHWC: sample, row, column, channel.
  size_t height = 0;
  size_t width = 0;
  size_t channels = 0;
  Elements<uint8_t> pixels;
  // Per channel, of pixels scaled to 0..1: networks standardise their inputs by these. Empty where unknown.
  std::vector<float> pixel_mean;
  std::vector<float> pixel_std;

  // A table, row-major.
  std::vector<std::string> columns;
  Elements<float> values;

  std::vector<uint16_t> labels;
  std::vector<std::string> class_names;

  // The person or device of each sample, an index into group_names; empty where the data has none.
  std::vector<uint32_t> groups;
  std::vector<std::string> group_names;

  size_t dropped_rows = 0;  // rows of the file that the loader skipped because a cell was empty

  size_t size() const { return labels.size(); }
  size_t class_count() const { return class_names.size(); }
  bool is_table() const { return !columns.empty(); }
  size_t image_bytes() const { return height * width * channels; }
  std::span<const uint8_t> image(size_t index) const {
    return {pixels.data() + index * image_bytes(), image_bytes()};
  }
  std::span<const float> row(size_t index) const {
    return {values.data() + index * columns.size(), columns.size()};
  }
};

// The samples of `indices`, in that order; dropped_rows is 0. Without indices: a prototype, all but the
// samples.
Dataset subset(const Dataset& dataset, std::span<const uint32_t> indices);

// The same without groups and their names, as a client gets them: of many clients that are groups, each would
// hold the names of all.
Dataset samples_at(const Dataset& dataset, std::span<const uint32_t> indices);

struct DataSplit {
  Dataset train;
  Dataset test;
  std::vector<std::string> notes = {};  // caveats that a summary must show, one line each
};

}  // namespace bitfed
