// A convolutional network as ONNX. Binary: of a pool's four sums the largest is taken before batch norm,
// whose factor is made positive by turning filters about; that also keeps runtimes from folding the norm into
// the filters, whose sums would then no longer be whole numbers.

#include <fmt/format.h>

#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/edge/onnx_body.h"
#include "bitfed/nn/folded_norm.h"
#include "bitfed/nn/sign_bits.h"

namespace bitfed {
namespace {

using Shape = OnnxGraph::Shape;

class NetworkGraph {
 public:
  NetworkGraph(const NetworkModel& model, OnnxGraph* graph)
      : spec_(model.spec()), state_(model.state()), graph_(*graph) {}

  std::string write(const std::string& input) {
    if (spec_.name != "cnn4")
      throw input_error("--format onnx: found {}; of the networks only cnn4 can be written as ONNX",
                        spec_.name);
    if (spec_.static_signs)
      throw input_error("--format onnx: found a network of model.deploy = static, expected image");
    std::string x = inputs(input);
    for (size_t block = 0; block < 4; ++block) {
      read_block(block);
      if (!spec_.binary) {
        x = real_block(x);
      } else {
        if (block > 0) x = signs(x, block);
        x = binary_block(x, block);
      }
    }
    return dense(x);
  }

 private:
  size_t channels(size_t block) const {
    return block == 0 ? spec_.channels : size_t{spec_.width} << (block - 1);
  }
  std::string scalar(float value) { return graph_.constant({}, std::vector{value}); }

  // From bytes to what the network takes, channels first.
  std::string inputs(const std::string& pixels) {
    std::string x = graph_.node("Div", {graph_.cast(pixels, OnnxType::kFloat), scalar(255.0f)});
    x = graph_.node("Sub", {x, graph_.constant({static_cast<int64_t>(spec_.channels)}, spec_.mean)});
    x = graph_.node("Div", {x, graph_.constant({static_cast<int64_t>(spec_.channels)}, spec_.deviation)});
    return graph_.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  }

  // weights_ by row and column of the kernel, channel, then filter.
  void read_block(size_t block) {
    in_ = channels(block);
    out_ = channels(block + 1);
    const std::string name = fmt::format("blocks.{}.", block);
    const std::string weights = name + "convolution.weights";
    weights_ = spec_.binary
                   ? unpack_signs(state_.values<uint8_t>(weights, {State::kAny}), 9 * in_ * out_, weights)
                   : state_.values<float>(weights, {State::kAny, State::kAny});
    const auto norm = [&](const char* what) {
      return state_.values<float>(name + "norm." + what, {1, out_});
    };
    norm_ = fold_norm(norm("scale"), norm("shift"), norm("mean"), norm("variance"));
    if (!spec_.binary) return;
    for (size_t filter = 0; filter < out_; ++filter) {
      if (!(norm_.factor[filter] < 0)) continue;
      norm_.factor[filter] = -norm_.factor[filter];
      for (size_t i = filter; i < weights_.size(); i += out_) weights_[i] = -weights_[i];
    }
  }

  Shape filter_shape() const { return {static_cast<int64_t>(out_), static_cast<int64_t>(in_), 3, 3}; }

  // By filter, channel, row and column, as Conv takes them.
  template <typename T>
  std::vector<T> turned_weights() const {
    std::vector<T> turned;
    for (size_t filter = 0; filter < out_; ++filter) {
      for (size_t c = 0; c < in_; ++c) {
        for (size_t tap = 0; tap < 9; ++tap)
          turned.push_back(static_cast<T>(weights_[(tap * in_ + c) * out_ + filter]));
      }
    }
    return turned;
  }

  std::string convolution(const std::string& x, const std::string& weights) {
    return graph_.node("Conv", {x, weights}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  }
  std::string pool(const std::string& x) {
    return graph_.node(
        "MaxPool", {x},
        {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  }
  std::string normed(const std::string& x) {
    const Shape shape = {1, static_cast<int64_t>(out_), 1, 1};
    return graph_.node("Add", {graph_.node("Mul", {x, graph_.constant(shape, norm_.factor)}),
                               graph_.constant(shape, norm_.offset)});
  }

  std::string real_block(const std::string& x) {
    const std::string weights = graph_.constant(filter_shape(), turned_weights<float>());
    return pool(graph_.node("Relu", {normed(convolution(x, weights))}));
  }

  // Real inputs are added one after the other, as they are when it is trained; signs may come in any order.
  std::string binary_block(const std::string& x, size_t block) {
    const std::string sums =
        block == 0 ? ordered_sums(x)
                   : convolution(x, graph_.small_floats(filter_shape(), turned_weights<int8_t>()));
    return graph_.node("Clip", {normed(pool(sums)), scalar(-1.0f), scalar(1.0f)});
  }

  std::string ordered_sums(const std::string& x) {
    const std::string bordered =
        graph_.node("Pad", {x, graph_.constant({8}, std::vector<int64_t>{0, 0, 1, 1, 0, 0, 1, 1})});
    std::string sum;
    for (size_t tap = 0; tap < 9; ++tap) {
      const auto row = static_cast<int64_t>(tap / 3);
      const auto column = static_cast<int64_t>(tap % 3);
      const std::string rows = graph_.slice(bordered, 2, row, row + spec_.height);
      const std::string shifted = graph_.slice(rows, 3, column, column + spec_.image_width);
      for (size_t c = 0; c < in_; ++c) {
        const auto channel = static_cast<int64_t>(c);
        std::vector<int8_t> signs;
        for (size_t filter = 0; filter < out_; ++filter)
          signs.push_back(static_cast<int8_t>(weights_[(tap * in_ + c) * out_ + filter]));
        const std::string plane = in_ == 1 ? shifted : graph_.slice(shifted, 1, channel, channel + 1);
        const std::string product =
            graph_.node("Mul", {plane, graph_.small_floats({1, static_cast<int64_t>(out_), 1, 1}, signs)});
        sum = sum.empty() ? product : graph_.node("Add", {sum, product});
      }
    }
    return sum;
  }

  // About the mean of an image, which is added up in doubles.
  std::string signs(const std::string& x, size_t block) {
    const double count =
        static_cast<double>((spec_.height >> block) * (spec_.image_width >> block) * channels(block));
    const std::string sum = graph_.node("ReduceSum", {graph_.cast(x, OnnxType::kDouble),
                                                      graph_.constant({3}, std::vector<int64_t>{1, 2, 3})});
    const std::string mean = graph_.node("Div", {sum, graph_.constant({}, std::vector{count})});
    return graph_.node("Where", {graph_.node("GreaterOrEqual", {x, graph_.cast(mean, OnnxType::kFloat)}),
                                 scalar(1.0f), scalar(-1.0f)});
  }

  // In doubles, so that the order does not matter.
  std::string dense(const std::string& x) {
    const auto weights = state_.values<float>("dense.weights", {State::kAny, State::kAny});
    const auto classes = static_cast<int64_t>(spec_.classes);
    const auto inputs = static_cast<int64_t>(weights.size()) / classes;
    std::string flat = graph_.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
    flat = graph_.node("Reshape", {flat, graph_.constant({2}, std::vector<int64_t>{-1, inputs})});
    const std::string wide = graph_.cast(graph_.constant({inputs, classes}, weights), OnnxType::kDouble);
    return graph_.cast(graph_.node("MatMul", {graph_.cast(flat, OnnxType::kDouble), wide}), OnnxType::kFloat);
  }

  const NetworkSpec& spec_;
  const State state_;
  OnnxGraph& graph_;
  size_t in_ = 0, out_ = 0;
  std::vector<float> weights_;
  FoldedNorm norm_;
};

}  // namespace

std::string add_onnx(const NetworkModel& model, const std::string& input, OnnxGraph* graph) {
  return NetworkGraph(model, graph).write(input);
}

}  // namespace bitfed
