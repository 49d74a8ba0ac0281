#include "bitfed/data/dataset.h"

namespace bitfed {
namespace {

bool are_consecutive(std::span<const uint32_t> indices) {
  for (size_t i = 1; i < indices.size(); ++i) {
    if (indices[i] != indices[i - 1] + 1) return false;
  }
  return !indices.empty();
}

// The rows of `indices`, each of `width` values.
template <typename T>
Elements<T> rows_at(const Elements<T>& values, std::span<const uint32_t> indices, size_t width) {
  if (are_consecutive(indices)) return values.part(indices.front() * width, indices.size() * width);
  std::vector<T> rows;
  rows.reserve(indices.size() * width);
  for (const uint32_t index : indices) {
    const T* row = values.data() + index * width;
    rows.insert(rows.end(), row, row + width);
  }
  return rows;
}

}  // namespace

Dataset samples_at(const Dataset& dataset, std::span<const uint32_t> indices) {
  Dataset result;
  result.name = dataset.name;
  result.height = dataset.height;
  result.width = dataset.width;
  result.channels = dataset.channels;
  result.pixel_mean = dataset.pixel_mean;
  result.pixel_std = dataset.pixel_std;
  result.columns = dataset.columns;
  result.class_names = dataset.class_names;
  if (dataset.is_table()) {
    result.values = rows_at(dataset.values, indices, dataset.columns.size());
  } else {
    result.pixels = rows_at(dataset.pixels, indices, dataset.image_bytes());
  }
  result.labels.reserve(indices.size());
  for (const uint32_t index : indices) result.labels.push_back(dataset.labels[index]);
  return result;
}

Dataset subset(const Dataset& dataset, std::span<const uint32_t> indices) {
  Dataset result = samples_at(dataset, indices);
  result.group_names = dataset.group_names;
  if (dataset.groups.empty()) return result;
  result.groups.reserve(indices.size());
  for (const uint32_t index : indices) result.groups.push_back(dataset.groups[index]);
  return result;
}

}  // namespace bitfed
