#include "bitfed/data/samples.h"

namespace bitfed {

SampleShape shape_of(const Dataset& dataset) {
  if (dataset.is_table()) return {.columns = dataset.columns.size()};
  return {.height = dataset.height, .width = dataset.width, .channels = dataset.channels};
}

Samples samples_of(const Dataset& dataset) {
  if (dataset.is_table()) return {nullptr, dataset.values.data(), dataset.size()};
  return {dataset.pixels.data(), nullptr, dataset.size()};
}

Dataset empty_dataset(const std::string& name, const SampleShape& shape) {
  Dataset dataset;
  dataset.name = name;
  dataset.height = shape.height;
  dataset.width = shape.width;
  dataset.channels = shape.channels;
  dataset.columns.resize(shape.columns);
  return dataset;
}

}  // namespace bitfed
