#pragma once

#include <string>
#include <vector>

#include "bitfed/edge/onnx/onnx_graph.h"
#include "bitfed/nn/layers/convolution_geometry.h"
#include "bitfed/nn/layers/dense.h"
#include "bitfed/nn/layers/folded_norm.h"
#include "bitfed/zoo/network_model.h"

namespace bitfed {

struct OnnxFilters {
  ConvolutionKernel kernel;
  size_t in = 0, out = 0;      // channels
  bool signs = false;          // all weights are +1 or -1
  std::vector<float> weights;  // by row and column of the kernel, channel, then filter
};

// The layers of convolutional networks as nodes. Images are [samples, channels, height, width].
class OnnxLayers {
 public:
  OnnxLayers(const NetworkModel& model, OnnxGraph* graph)
      : spec_(model.spec()), state_(model.state()), graph_(*graph) {}

  // `name`: as the tensors' names begin.
  OnnxFilters filters(const std::string& name, const ConvolutionKernel& kernel, size_t in, size_t out) const;
  FoldedNorm norm(const std::string& name, size_t channels) const;

  // From bytes to what the network takes.
  std::string inputs(const std::string& pixels);
  std::string convolution(const std::string& x, const OnnxFilters& filters);
  // The 3 x 3 convolution of the inputs, where signs follow: added up in the order of training. The product
  // with a sign is exact. One with a real weight is exact in a double, and so is nearly always the sum of it
  // and a float, which is then rounded once, as a fused multiply-add is: it takes a sum of more than 53 bits
  // that a double rounds to the very middle of two floats to give another last bit.
  std::string ordered_convolution(const std::string& x, const OnnxFilters& filters);
  std::string normed(const std::string& x, const FoldedNorm& norm);
  // Hardtanh of a binary network, ReLU of a real one.
  std::string activated(const std::string& x);
  // Of an image of so many pixels about its mean, or that of a static network; `name`: of the convolution
  // that takes them.
  std::string signs(const std::string& x, size_t pixels, size_t channels, const std::string& name);
  // The mean of each channel, as an image of one pixel.
  std::string average_pool(const std::string& x, size_t pixels, size_t channels);
  // The scores. In doubles, so that the order does not matter.
  std::string dense(const std::string& x, Bias bias);

 private:
  std::string scalar(float value) { return graph_.constant({}, std::vector{value}); }
  std::string channel_numbers(const std::vector<float>& numbers);
  std::string tap(const std::string& bordered, size_t row, size_t column);
  std::string image_mean(const std::string& x, size_t pixels, size_t channels);
  // One after the other along an axis of this length, of which 1 is left. ReduceSum names no order.
  std::string ordered_sum(const std::string& x, int64_t axis, size_t length);

  const NetworkSpec& spec_;
  const State state_;
  OnnxGraph& graph_;
};

}  // namespace bitfed
