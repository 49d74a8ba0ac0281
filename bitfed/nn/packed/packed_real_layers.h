#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bitfed/nn/convolution/convolution_geometry.h"
#include "bitfed/nn/layers/images.h"
#include "bitfed/nn/norm/folded_norm.h"
#include "bitfed/nn/packed/packed_layer.h"

namespace bitfed {

// Layers of a packed network that work on floats. `product`: the index of the convolution or dense layer
// among all of them, see PackedNetwork::measure_layers().

// A convolution with real inputs, the batch norm or bias behind it, and the activation; then the largest of
// every 2 x 2 pixels, where it pools.
struct PackedRealConvolution {
  size_t product = 0;
  size_t height = 0, width = 0, channels = 0;  // of the input
  std::vector<float>
      inputs;  // of a first layer: the input for every value of a pixel, [channel][256]; else empty
  std::vector<float> weights;  // by row and column of the kernel, input channel, then filter
  ConvolutionKernel kernel;
  FoldedNorm norm;
  Activation activation = Activation::kNone;
  bool pools = false;
};
std::unique_ptr<PackedLayer> make_packed(const PackedRealConvolution& convolution);

// x * factor + offset per channel, then the activation.
std::unique_ptr<PackedLayer> make_packed_affine(size_t pixels, const FoldedNorm& norm, Activation activation);

std::unique_ptr<PackedLayer> make_packed_max_pool(const ImageShape& input, size_t window);
std::unique_ptr<PackedLayer> make_packed_average_pool(const ImageShape& input, size_t window);

// `weights` by input, then unit; `bias` may be empty.
std::unique_ptr<PackedLayer> make_packed_dense(size_t product, const std::vector<float>& weights,
                                               size_t units, const std::vector<float>& bias);

}  // namespace bitfed
