// ResNet10 and ResNet18 as ONNX. Sums of signs are rounded, which changes no whole number: it keeps runtimes
// from folding batch norm into the filters.

#include "bitfed/edge/onnx/onnx_body.h"
#include "bitfed/edge/onnx/onnx_layers.h"
#include "bitfed/zoo/resnet.h"

namespace bitfed {
namespace {

class ResnetGraph {
 public:
  ResnetGraph(const NetworkModel& model, OnnxGraph* graph)
      : spec_(model.spec()),
        graph_(*graph),
        layers_(model, graph),
        height_(spec_.height),
        width_(spec_.image_width) {}

  std::string write(const std::string& input) {
    std::string x = stem(layers_.inputs(input));
    size_t channels = spec_.width;
    for (const ResnetBlock& block : resnet_blocks(spec_)) {
      x = residual(x, block);
      channels = block.out;
    }
    x = layers_.average_pool(x, height_ * width_, channels);
    return layers_.dense(layers_.normed(x, layers_.norm("norm", channels)), Bias::kLearned);
  }

 private:
  std::string stem(const std::string& x) {
    const OnnxFilters filters = layers_.filters("stem", {}, spec_.channels, spec_.width);
    const std::string sums =
        spec_.binary ? layers_.ordered_convolution(x, filters) : layers_.convolution(x, filters);
    return layers_.activated(layers_.normed(sums, layers_.norm("stem.norm", spec_.width)));
  }

  // What convolutions take of an image of the present size.
  std::string entry(const std::string& x, size_t channels, const std::string& name) {
    return spec_.binary ? layers_.signs(x, height_ * width_, channels, name) : x;
  }

  std::string convolution(const std::string& x, const std::string& name, const ConvolutionKernel& kernel,
                          size_t in, size_t out) {
    std::string sums = layers_.convolution(x, layers_.filters(name + ".convolution", kernel, in, out));
    if (spec_.binary) sums = graph_.node("Round", {sums});
    return layers_.normed(sums, layers_.norm(name + ".norm", out));
  }

  std::string residual(const std::string& x, const ResnetBlock& block) {
    const ConvolutionKernel kernel{3, block.stride};
    const std::string from = entry(x, block.in, block.name + ".first");
    height_ = kernel.steps(height_);
    width_ = kernel.steps(width_);
    std::string path =
        layers_.activated(convolution(from, block.name + ".first", kernel, block.in, block.out));
    const std::string second = block.name + ".second";
    path = convolution(entry(path, block.out, second), second, {3, 1}, block.out, block.out);
    const std::string shortcut = block.has_shortcut() ? convolution(from, block.name + ".shortcut",
                                                                    {1, block.stride}, block.in, block.out)
                                                      : x;
    return layers_.activated(graph_.node("Add", {path, shortcut}));
  }

  const NetworkSpec& spec_;
  OnnxGraph& graph_;
  OnnxLayers layers_;
  size_t height_, width_;  // of the images so far
};

}  // namespace

std::string add_resnet(const NetworkModel& model, const std::string& input, OnnxGraph* graph) {
  return ResnetGraph(model, graph).write(input);
}

}  // namespace bitfed
