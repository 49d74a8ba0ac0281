#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bitfed/nn/convolution/convolution_geometry.h"
#include "bitfed/nn/kernels/kernels.h"
#include "bitfed/zoo/network/network_spec.h"

namespace bitfed {

// The one description of a network. Training, packing, tensor names, costs and the exporters walk it; none of
// them knows an architecture by name.

struct LayerShape {
  uint32_t height = 1;
  uint32_t width = 1;
  uint32_t channels = 1;

  uint64_t pixels() const { return uint64_t{height} * width; }
  uint64_t count() const { return pixels() * channels; }
  bool operator==(const LayerShape&) const = default;
};

enum class LayerKind {
  kSigns,        // +1 or -1: at or above a mean, or below it
  kConvolution,  // without bias
  kDense,        // of all values of an image, without bias
  kBias,         // one per channel; belongs to the convolution or dense layer before it
  kNorm,         // batch norm
  kActivation,
  kMaxPool,      // window x window, as far apart
  kAveragePool,  // likewise; a window of 0: over all pixels
  kDropout,
  kResidual,  // path(x) + shortcut(x)
};

// What signs are compared with.
enum class SignMean {
  kImage,    // the mean of an image's values
  kRunning,  // a statistic of training, the tensor NAME.mean
  kZero,
};

struct LayerRecord {
  LayerKind kind;
  std::string name;  // the prefix of its tensors' names
  LayerShape in, out;

  ConvolutionKernel kernel = {};              // kConvolution
  bool sign_weights = false;                  // kConvolution, kDense
  bool sign_inputs = false;                   // likewise: the layer before it is kSigns
  SignMean mean = SignMean::kImage;           // kSigns
  bool folded = false;                        // kNorm: a factor and an offset instead of statistics
  Activation activation = Activation::kNone;  // kActivation
  uint32_t window = 0;                        // kMaxPool, kAveragePool
  double rate = 0;                            // kDropout: the share of values that become 0
  // kResidual. A leading kSigns of the path is shared by the shortcut; an empty shortcut is x itself.
  std::vector<LayerRecord> path = {};
  std::vector<LayerRecord> shortcut = {};

  bool is_product() const { return kind == LayerKind::kConvolution || kind == LayerKind::kDense; }
};

struct Architecture {
  LayerShape input;
  uint32_t classes = 0;
  std::vector<LayerRecord> layers;  // from the input to the classes' scores
};

// Calls visit(record) for every record in the order of their tensors; residual blocks are followed by the
// records of their path and shortcut.
template <typename Visit>
void for_each_record(const std::vector<LayerRecord>& layers, const Visit& visit) {
  for (const LayerRecord& record : layers) {
    visit(record);
    for_each_record(record.path, visit);
    for_each_record(record.shortcut, visit);
  }
}

struct ConvolutionRecord {
  std::string name;
  std::string signs_name;  // of the signs before it, where it takes signs
  uint32_t channels = 1;
  ConvolutionKernel kernel = {};
  bool sign_weights = false;
  bool sign_inputs = false;
};

// A basic block of a residual network: two 3 x 3 convolutions with batch norm, the first of this stride, and
// a 1 x 1 convolution as the shortcut where the shape changes; an activation behind each sum. With shortcuts
// around each convolution it is two residual records, the second with x itself as its shortcut.
struct BasicBlock {
  std::string name;
  uint32_t channels = 1;
  uint32_t stride = 1;
  Activation activation = Activation::kRelu;
  Shortcuts shortcuts = Shortcuts::kBlock;
};

// Appends layers one after the other and keeps track of the shape. Layers that cannot stand where they are
// asked for are an input_error that begins with the text given to at().
class ArchitectureBuilder {
 public:
  // `static_signs`: signs are about running means.
  ArchitectureBuilder(const LayerShape& input, bool binary, bool static_signs);

  void at(std::string where) { where_ = std::move(where); }
  const LayerShape& shape() const { return shape_; }
  bool empty() const { return layers_.empty(); }

  void convolution(const ConvolutionRecord& convolution);
  void dense(const std::string& name, uint32_t units);
  void bias(const std::string& name);
  void norm(const std::string& name);
  void activation(Activation activation);
  void max_pool(uint32_t window);
  void average_pool(uint32_t window = 0);
  void dropout(double rate);
  void basic_block(const BasicBlock& block);

  [[noreturn]] void refuse(const std::string& reason) const;

  // The last layer must give one score per class.
  Architecture finish(uint32_t classes);

 private:
  LayerRecord& add(LayerKind kind, const std::string& name, const LayerShape& out);
  ArchitectureBuilder inner() const;
  void block_convolution(const std::string& name, uint32_t channels, const ConvolutionKernel& kernel);
  void residual(const std::string& name, ArchitectureBuilder path, const BasicBlock& block);
  void check_channels(uint32_t channels) const;
  void check_size(const LayerShape& shape) const;

  LayerShape input_, shape_;
  bool binary_, static_signs_;
  std::string where_;
  std::vector<LayerRecord> layers_;
};

}  // namespace bitfed
