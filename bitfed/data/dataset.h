#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bitfed {

// Labelled samples in memory: images of bytes, or a table of numbers. Exactly one of `pixels` and
// `values` is filled. Loaders guarantee that the sizes agree and every label is below class_count().
struct Dataset {
  std::string name;

  // Images, sample by sample; within one row by row, then column, then channel.
  size_t height = 0;
  size_t width = 0;
  size_t channels = 0;
  std::vector<uint8_t> pixels;

  // A table, row by row.
  std::vector<std::string> columns;
  std::vector<float> values;

  std::vector<uint16_t> labels;
  std::vector<std::string> class_names;

  // Whom each sample belongs to, where the data says so: an index into group_names. Else empty.
  std::vector<uint32_t> groups;
  std::vector<std::string> group_names;

  size_t dropped_rows = 0;  // of the file, left out by its loader because a cell was empty

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

// The samples of `indices`, in that order. What was dropped from the file is not the part's: 0.
Dataset subset(const Dataset& dataset, std::span<const uint32_t> indices);

struct DataSplit {
  Dataset train;
  Dataset test;
  std::vector<std::string> notes = {};  // what one should know before believing a result: a line each
};

}  // namespace bitfed
