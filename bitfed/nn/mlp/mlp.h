#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/base/hash/random.h"

namespace bitfed {

// A multilayer perceptron without biases, with a batch norm without scale after every layer (the last, too).
// Binary: weights, and the inputs of all layers but the first, are signs. Else ReLU.
struct MlpShape {
  std::vector<uint32_t> widths;  // inputs, hidden layers, classes
  bool binary = true;

  size_t layers() const { return widths.size() - 1; }
  size_t weights() const;  // of all layers
  size_t units() const;    // outputs of all layers
  bool operator==(const MlpShape&) const = default;
};

// All that training changes. Layers are contiguous: weights row by row (a row holds an input's weights to all
// outputs), and for every unit the batch norm's shift, running mean and running variance.
struct MlpParameters {
  std::vector<float> weights;  // latent weights where the network is binary
  std::vector<float> shifts;
  std::vector<float> means;
  std::vector<float> variances;

  bool operator==(const MlpParameters&) const = default;
};

inline constexpr float kNormEpsilon = 1e-3f;

// Glorot's uniform weights; shifts and means 0, variances 1.
MlpParameters initial_parameters(const MlpShape& shape, RandomStream random);

}  // namespace bitfed
