#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bitfed/zoo/network/architecture.h"

namespace bitfed {

// A tensor of a model file.
struct NetworkTensor {
  std::string name;
  uint64_t rows;
  uint64_t columns;
  bool signs = false;      // one bit per value
  bool statistic = false;  // accumulated in training, not learned

  uint64_t count() const { return rows * columns; }
  uint64_t packed_bytes() const { return signs ? (count() + 7) / 8 : sizeof(float) * count(); }
};

// All tensors, in the order of Network::parameters().
std::vector<NetworkTensor> network_tensors(const Architecture& architecture);

// A product with a matrix of weights, `inputs` x `outputs`, at `positions` of an image: a convolution or a
// dense layer. Operations are those of one prediction: real ones by the papers' count, two per multiply-add
// (one where the weight is a sign), and one-bit ones where both factors are signs.
struct LayerCosts {
  std::string name;  // the prefix of the layer's tensors' names, without ".convolution"
  uint64_t inputs = 0;
  uint64_t outputs = 0;
  uint64_t positions = 1;
  uint32_t bits_per_weight = 1;
  uint64_t weight_bytes = 0;
  uint64_t norm_bytes = 0;  // batch norm or bias directly behind it
  uint64_t binary_ops = 0;
  uint64_t flops = 0;

  uint64_t multiply_adds() const { return inputs * outputs * positions; }
};

std::vector<LayerCosts> layer_costs(const Architecture& architecture);

}  // namespace bitfed
