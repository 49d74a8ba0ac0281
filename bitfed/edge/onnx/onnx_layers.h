#pragma once

#include <string>
#include <vector>

#include "bitfed/edge/onnx/onnx_graph.h"
#include "bitfed/nn/convolution/convolution_geometry.h"
#include "bitfed/nn/layers/dense.h"
#include "bitfed/nn/norm/folded_norm.h"
#include "bitfed/zoo/network/network_model.h"

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

  OnnxFilters filters(const LayerRecord& convolution) const;
  FoldedNorm norm(const LayerRecord& norm) const;

  // From bytes to the network's input.
  std::string inputs(const std::string& pixels);
  std::string convolution(const std::string& x, const OnnxFilters& filters);
  // A convolution of real inputs where signs follow: added up in the order of training. The product with a
  // sign is exact. One with a real weight is exact in a double, and so is nearly always the sum of it and a
  // float, which is then rounded once, as a fused multiply-add is: it takes a sum of more than 53 bits that a
  // double rounds to the very middle of two floats to give another last bit.
  std::string ordered_convolution(const std::string& x, const LayerRecord& convolution,
                                  const OnnxFilters& filters);
  std::string biased(const std::string& x, const LayerRecord& bias);
  std::string normed(const std::string& x, const FoldedNorm& norm);
  std::string activated(const std::string& x, Activation activation);
  std::string signs(const std::string& x, const LayerRecord& signs);
  std::string max_pool(const std::string& x, uint32_t window);
  std::string average_pool(const std::string& x, const LayerRecord& pool);
  // Of all values of an image: [samples, units]. In doubles, so that the order does not matter.
  std::string dense(const std::string& x, const LayerRecord& dense, Bias bias);
  // [samples, channels] as images of one pixel.
  std::string as_image(const std::string& x, size_t channels);

 private:
  std::string scalar(float value) { return graph_.constant({}, std::vector{value}); }
  std::string channel_values(const std::vector<float>& values);
  // The pixels from (row, column) on, `stride` apart, as many as the layer gives.
  std::string strided(const std::string& x, size_t row, size_t column, size_t stride, const LayerShape& out);
  std::string image_mean(const std::string& x, const LayerShape& image);
  // The sum along an axis of this length, in sequence; ReduceSum names no order.
  std::string ordered_sum(const std::string& x, int64_t axis, size_t length);

  const NetworkSpec& spec_;
  const State state_;
  OnnxGraph& graph_;
};

}  // namespace bitfed
