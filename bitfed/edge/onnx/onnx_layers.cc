#include "bitfed/edge/onnx/onnx_layers.h"

#include "bitfed/nn/products/sign_bits.h"

namespace bitfed {
namespace {

using Shape = OnnxGraph::Shape;

int64_t length(size_t value) {
  return static_cast<int64_t>(value);
}

// By filter, channel, row and column, as Conv takes them.
template <typename T>
std::vector<T> turned_weights(const OnnxFilters& filters) {
  std::vector<T> turned;
  for (size_t filter = 0; filter < filters.out; ++filter) {
    for (size_t c = 0; c < filters.in; ++c) {
      for (size_t tap = 0; tap < filters.kernel.taps(); ++tap)
        turned.push_back(static_cast<T>(filters.weights[(tap * filters.in + c) * filters.out + filter]));
    }
  }
  return turned;
}

}  // namespace

OnnxFilters OnnxLayers::filters(const std::string& name, const ConvolutionKernel& kernel, size_t in,
                                size_t out) const {
  const std::string weights = name + ".weights";
  OnnxFilters filters{kernel, in, out, spec_.binary && name.ends_with(".convolution"), {}};
  filters.weights = filters.signs ? unpack_signs(state_.values<uint8_t>(weights, {State::kAny}),
                                                 kernel.taps() * in * out, weights)
                                  : state_.values<float>(weights, {kernel.taps() * in, out});
  return filters;
}

FoldedNorm OnnxLayers::norm(const std::string& name, size_t channels) const {
  const auto numbers = [&](const char* what) {
    return state_.values<float>(name + "." + what, {1, channels});
  };
  return fold_norm(numbers("scale"), numbers("shift"), numbers("mean"), numbers("variance"));
}

std::string OnnxLayers::inputs(const std::string& pixels) {
  std::string x = graph_.node("Div", {graph_.cast(pixels, OnnxType::kFloat), scalar(255.0f)});
  x = graph_.node("Sub", {x, graph_.constant({length(spec_.channels)}, spec_.mean)});
  x = graph_.node("Div", {x, graph_.constant({length(spec_.channels)}, spec_.deviation)});
  return graph_.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
}

std::string OnnxLayers::convolution(const std::string& x, const OnnxFilters& filters) {
  const int64_t side = length(filters.kernel.side);
  const int64_t stride = length(filters.kernel.stride);
  const Shape shape = {length(filters.out), length(filters.in), side, side};
  const std::string weights = filters.signs ? graph_.small_floats(shape, turned_weights<int8_t>(filters))
                                            : graph_.constant(shape, turned_weights<float>(filters));
  return graph_.node("Conv", {x, weights},
                     {{"pads", std::vector<int64_t>(4, side / 2)}, {"strides", std::vector{stride, stride}}});
}

std::string OnnxLayers::channel_numbers(const std::vector<float>& numbers) {
  return graph_.constant({1, length(numbers.size()), 1, 1}, numbers);
}

// Of all pixels of an image with a border of one, those that this tap of the kernel meets.
std::string OnnxLayers::tap(const std::string& bordered, size_t row, size_t column) {
  const std::string rows = graph_.slice(bordered, 2, length(row), length(row + spec_.height));
  return graph_.slice(rows, 3, length(column), length(column + spec_.image_width));
}

std::string OnnxLayers::ordered_convolution(const std::string& x, const OnnxFilters& filters) {
  const size_t in = filters.in;
  std::string bordered =
      graph_.node("Pad", {x, graph_.constant({8}, std::vector<int64_t>{0, 0, 1, 1, 0, 0, 1, 1})});
  if (!filters.signs) bordered = graph_.cast(bordered, OnnxType::kDouble);
  std::string sum;
  auto weights = filters.weights.begin();
  for (size_t i = 0; i < 9; ++i) {
    const std::string shifted = tap(bordered, i / 3, i % 3);
    for (size_t c = 0; c < in; ++c, weights += length(filters.out)) {
      const std::string plane = in == 1 ? shifted : graph_.slice(shifted, 1, length(c), length(c + 1));
      const std::vector<float> row(weights, weights + length(filters.out));
      if (filters.signs) {
        const std::string product = graph_.node("Mul", {plane, channel_numbers(row)});
        sum = sum.empty() ? product : graph_.node("Add", {sum, product});
      } else {
        const std::string wide = graph_.cast(channel_numbers(row), OnnxType::kDouble);
        std::string exact = graph_.node("Mul", {plane, wide});
        if (!sum.empty()) exact = graph_.node("Add", {exact, graph_.cast(sum, OnnxType::kDouble)});
        sum = graph_.cast(exact, OnnxType::kFloat);
      }
    }
  }
  return sum;
}

std::string OnnxLayers::normed(const std::string& x, const FoldedNorm& norm) {
  return graph_.node("Add",
                     {graph_.node("Mul", {x, channel_numbers(norm.factor)}), channel_numbers(norm.offset)});
}

std::string OnnxLayers::activated(const std::string& x) {
  return spec_.binary ? graph_.node("Clip", {x, scalar(-1.0f), scalar(1.0f)}) : graph_.node("Relu", {x});
}

std::string OnnxLayers::ordered_sum(const std::string& x, int64_t axis, size_t count) {
  const std::string sums = graph_.node("CumSum", {x, graph_.constant({}, std::vector{axis})});
  return graph_.slice(sums, axis, length(count) - 1, length(count));
}

// In doubles, as 16 sums, which are then added by halves.
std::string OnnxLayers::image_mean(const std::string& x, size_t pixels, size_t channels) {
  const size_t count = pixels * channels;
  const std::string by_pixel = graph_.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  const Shape lanes = {-1, length(count / kLanes), length(kLanes), 1};
  const std::string rows = graph_.node("Reshape", {by_pixel, graph_.constant({4}, lanes)});
  std::string sums = ordered_sum(graph_.cast(rows, OnnxType::kDouble), 1, count / kLanes);
  for (int64_t half = length(kLanes) / 2; half > 0; half /= 2)
    sums = graph_.node("Add", {graph_.slice(sums, 2, 0, half), graph_.slice(sums, 2, half, 2 * half)});
  const std::string numbers = graph_.constant({}, std::vector{static_cast<double>(count)});
  return graph_.cast(graph_.node("Div", {sums, numbers}), OnnxType::kFloat);
}

std::string OnnxLayers::signs(const std::string& x, size_t pixels, size_t channels, const std::string& name) {
  const std::string mean = spec_.static_signs ? scalar(state_.values<float>(name + ".signs.mean", {1, 1})[0])
                                              : image_mean(x, pixels, channels);
  return graph_.node("Where", {graph_.node("GreaterOrEqual", {x, mean}), scalar(1.0f), scalar(-1.0f)});
}

std::string OnnxLayers::average_pool(const std::string& x, size_t pixels, size_t channels) {
  const Shape rows = {-1, length(channels), length(pixels), 1};
  const std::string by_channel = graph_.node("Reshape", {x, graph_.constant({4}, rows)});
  return graph_.node("Div", {ordered_sum(by_channel, 2, pixels), scalar(static_cast<float>(pixels))});
}

std::string OnnxLayers::dense(const std::string& x, Bias bias) {
  const auto weights = state_.values<float>("dense.weights", {State::kAny, spec_.classes});
  const auto classes = length(spec_.classes);
  const auto inputs = length(weights.size()) / classes;
  std::string flat = graph_.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  flat = graph_.node("Reshape", {flat, graph_.constant({2}, std::vector<int64_t>{-1, inputs})});
  const std::string wide = graph_.cast(graph_.constant({inputs, classes}, weights), OnnxType::kDouble);
  std::string scores = graph_.node("MatMul", {graph_.cast(flat, OnnxType::kDouble), wide});
  if (bias == Bias::kLearned) {
    const auto numbers = state_.values<float>("dense.bias", {1, spec_.classes});
    scores =
        graph_.node("Add", {scores, graph_.cast(graph_.constant({1, classes}, numbers), OnnxType::kDouble)});
  }
  return graph_.cast(scores, OnnxType::kFloat);
}

}  // namespace bitfed
