#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bitfed/nn/packed/packed_layer.h"

namespace bitfed {

// A binary network as it is deployed, on bits. Gives the very bits of the layers of Network.
class PackedNetwork {
 public:
  PackedNetwork(size_t image_bytes, size_t classes, std::vector<std::unique_ptr<PackedLayer>> layers);

  // Made once per thread and reused.
  PackedWorkspace make_workspace() const { return PackedWorkspace(sizes_); }

  // From an image's pixels (row by row, then column, then channel) to the scores of all classes.
  void predict(const uint8_t* pixels, PackedWorkspace* workspace, float* scores) const;

  // The seconds that each convolution and dense layer takes of a prediction, measured now, in their order.
  std::vector<double> measure_layers() const;

 private:
  void run(const uint8_t* pixels, PackedWorkspace* workspace) const;

  size_t image_bytes_, classes_;
  std::vector<std::unique_ptr<PackedLayer>> layers_;
  PackedSizes sizes_;
};

}  // namespace bitfed
