#include "bitfed/zoo/network/architecture.h"

#include <fmt/format.h>

#include <algorithm>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr uint64_t kMaxLayerValues = uint64_t{1} << 24;
constexpr size_t kMaxSide = 15;  // of a kernel

}  // namespace

ArchitectureBuilder::ArchitectureBuilder(const LayerShape& input, bool binary, bool static_signs)
    : input_(input), shape_(input), binary_(binary), static_signs_(static_signs) {}

void ArchitectureBuilder::refuse(const std::string& reason) const {
  throw input_error("{}: {}", where_, reason);
}

LayerRecord& ArchitectureBuilder::add(LayerKind kind, const std::string& name, const LayerShape& out) {
  check_size(out);
  layers_.push_back({.kind = kind, .name = name, .in = shape_, .out = out});
  shape_ = out;
  return layers_.back();
}

// A model file of a few bytes may claim layers that no memory holds.
void ArchitectureBuilder::check_size(const LayerShape& shape) const {
  if (shape.count() > kMaxLayerValues) {
    refuse(fmt::format("a layer of {} x {} x {} values, expected at most {}", shape.height, shape.width,
                       shape.channels, kMaxLayerValues));
  }
}

// The bits of a pixel's channels, and the kernels that work on them, come in multiples of kLanes.
void ArchitectureBuilder::check_channels(uint32_t channels) const {
  if (binary_ && channels % kLanes != 0)
    refuse(fmt::format("found {} channels, expected a multiple of {} in a binary network", channels, kLanes));
}

void ArchitectureBuilder::convolution(const ConvolutionRecord& convolution) {
  const ConvolutionKernel& kernel = convolution.kernel;
  if (kernel.side % 2 == 0 || kernel.side > kMaxSide)
    refuse(fmt::format("found a kernel of {}, expected an odd number up to {}", kernel.side, kMaxSide));
  const size_t min_side = kernel.side - 2 * kernel.padding();
  if (shape_.height < min_side || shape_.width < min_side) {
    refuse(fmt::format("a kernel of {} x {} without padding, found images of {} x {}", kernel.side,
                       kernel.side, shape_.height, shape_.width));
  }
  check_channels(convolution.channels);
  if (convolution.sign_inputs) {
    check_channels(shape_.channels);
    add(LayerKind::kSigns, convolution.signs_name, shape_).mean =
        static_signs_ ? SignMean::kRunning : SignMean::kImage;
  }
  const LayerShape out{static_cast<uint32_t>(kernel.steps(shape_.height)),
                       static_cast<uint32_t>(kernel.steps(shape_.width)), convolution.channels};
  LayerRecord& record = add(LayerKind::kConvolution, convolution.name, out);
  record.kernel = kernel;
  record.sign_weights = convolution.sign_weights;
  record.sign_inputs = convolution.sign_inputs;
}

void ArchitectureBuilder::dense(const std::string& name, uint32_t units) {
  add(LayerKind::kDense, name, {1, 1, units});
}

void ArchitectureBuilder::bias(const std::string& name) {
  add(LayerKind::kBias, name, shape_);
}

void ArchitectureBuilder::norm(const std::string& name) {
  add(LayerKind::kNorm, name, shape_);
}

void ArchitectureBuilder::activation(Activation activation) {
  add(LayerKind::kActivation, "", shape_).activation = activation;
}

void ArchitectureBuilder::max_pool(uint32_t window) {
  if (window > shape_.height || window > shape_.width) {
    refuse(fmt::format("a window of {} x {}, found images of {} x {}", window, window, shape_.height,
                       shape_.width));
  }
  add(LayerKind::kMaxPool, "", {shape_.height / window, shape_.width / window, shape_.channels}).window =
      window;
}

void ArchitectureBuilder::average_pool(uint32_t window) {
  if (window == 0) {
    add(LayerKind::kAveragePool, "", {1, 1, shape_.channels});
    return;
  }
  max_pool(window);
  layers_.back().kind = LayerKind::kAveragePool;
}

void ArchitectureBuilder::dropout(double rate) {
  add(LayerKind::kDropout, "", shape_).rate = rate;
}

// Of a path that begins with the present shape.
ArchitectureBuilder ArchitectureBuilder::inner() const {
  ArchitectureBuilder builder(shape_, binary_, static_signs_);
  builder.at(where_);
  return builder;
}

void ArchitectureBuilder::block_convolution(const std::string& name, uint32_t channels,
                                            const ConvolutionKernel& kernel) {
  convolution({name + ".convolution", name + ".signs", channels, kernel, binary_, binary_});
  norm(name + ".norm");
}

// Adds the path and its shortcut, then the activation.
void ArchitectureBuilder::residual(const std::string& name, ArchitectureBuilder path,
                                   const BasicBlock& block) {
  std::vector<LayerRecord> shortcut;
  if (path.shape() != shape_) {
    ArchitectureBuilder short_path = inner();
    short_path.block_convolution(block.name + ".shortcut", block.channels, {1, block.stride});
    shortcut = std::move(short_path.layers_);
    if (binary_) shortcut.erase(shortcut.begin());  // the path's signs
  }
  LayerRecord& record = add(LayerKind::kResidual, name, path.shape());
  record.path = std::move(path.layers_);
  record.shortcut = std::move(shortcut);
  activation(block.activation);
}

void ArchitectureBuilder::basic_block(const BasicBlock& block) {
  ArchitectureBuilder path = inner();
  path.block_convolution(block.name + ".first", block.channels, {3, block.stride});
  if (block.shortcuts == Shortcuts::kConvolution) {
    residual(block.name + ".first", std::move(path), block);
    path = inner();
  } else {
    path.activation(block.activation);
  }
  path.block_convolution(block.name + ".second", block.channels, {3, 1});
  residual(block.shortcuts == Shortcuts::kConvolution ? block.name + ".second" : block.name, std::move(path),
           block);
}

Architecture ArchitectureBuilder::finish(uint32_t classes) {
  // The bias belongs to its layer; behind the scores nothing else may stand.
  const bool biased = !layers_.empty() && layers_.back().kind == LayerKind::kBias;
  const size_t count = layers_.size() - (biased ? 1 : 0);
  if (layers_.empty() || layers_[count - 1].kind != LayerKind::kDense || shape_ != LayerShape{1, 1, classes})
    refuse(fmt::format("expected a dense layer of {} units, one per class, at the end", classes));
  if (binary_ && layers_[0].kind != LayerKind::kConvolution)
    refuse("expected a convolution as the first layer of a binary network");
  for (size_t i = 0; i + 1 < count; ++i) {
    if (layers_[i].kind == LayerKind::kDense) check_channels(layers_[i].out.channels);
  }
  return {input_, classes, std::move(layers_)};
}

}  // namespace bitfed
