#include "bitfed/data/dataset.h"

namespace bitfed {

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
  result.pixels.reserve(dataset.is_table() ? 0 : indices.size() * dataset.image_bytes());
  result.values.reserve(indices.size() * dataset.columns.size());
  result.labels.reserve(indices.size());
  for (const uint32_t index : indices) {
    if (dataset.is_table()) {
      const auto row = dataset.row(index);
      result.values.insert(result.values.end(), row.begin(), row.end());
    } else {
      const auto image = dataset.image(index);
      result.pixels.insert(result.pixels.end(), image.begin(), image.end());
    }
    result.labels.push_back(dataset.labels[index]);
  }
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
