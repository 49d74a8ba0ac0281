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
std::vector<T> conv_weights(const OnnxFilters& filters) {
  std::vector<T> weights;
  for (size_t filter = 0; filter < filters.out; ++filter) {
    for (size_t c = 0; c < filters.in; ++c) {
      for (size_t tap = 0; tap < filters.kernel.taps(); ++tap)
        weights.push_back(static_cast<T>(filters.weights[(tap * filters.in + c) * filters.out + filter]));
    }
  }
  return weights;
}

}  // namespace

OnnxFilters OnnxLayers::filters(const LayerRecord& convolution) const {
  const std::string name = convolution.name + ".weights";
  OnnxFilters filters{
      convolution.kernel, convolution.in.channels, convolution.out.channels, convolution.sign_weights, {}};
  const size_t inputs = filters.kernel.taps() * filters.in;
  filters.weights =
      filters.signs ? unpack_signs(state_.values<uint8_t>(name, {State::kAny}), inputs * filters.out, name)
                    : state_.values<float>(name, {inputs, filters.out});
  return filters;
}

FoldedNorm OnnxLayers::norm(const LayerRecord& norm) const {
  const auto values = [&](const char* what) {
    return state_.values<float>(norm.name + "." + what, {1, norm.out.channels});
  };
  return fold_norm(values("scale"), values("shift"), values("mean"), values("variance"));
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
  const std::string weights = filters.signs ? graph_.small_floats(shape, conv_weights<int8_t>(filters))
                                            : graph_.constant(shape, conv_weights<float>(filters));
  return graph_.node("Conv", {x, weights},
                     {{"pads", std::vector<int64_t>(4, length(filters.kernel.padding()))},
                      {"strides", std::vector{stride, stride}}});
}

std::string OnnxLayers::channel_values(const std::vector<float>& values) {
  return graph_.constant({1, length(values.size()), 1, 1}, values);
}

std::string OnnxLayers::strided(const std::string& x, size_t row, size_t column, size_t stride,
                                const LayerShape& out) {
  const auto along = [&](const std::string& from, int64_t axis, size_t first, size_t count) {
    const int64_t end = length(first + (count - 1) * stride + 1);
    return stride == 1 ? graph_.slice(from, axis, length(first), end)
                       : graph_.slice(from, axis, length(first), end, length(stride));
  };
  return along(along(x, 2, row, out.height), 3, column, out.width);
}

std::string OnnxLayers::ordered_convolution(const std::string& x, const LayerRecord& convolution,
                                            const OnnxFilters& filters) {
  const size_t in = filters.in;
  const int64_t padding = length(filters.kernel.padding());
  std::string bordered = x;
  if (padding > 0) {
    bordered = graph_.node(
        "Pad",
        {x, graph_.constant({8}, std::vector<int64_t>{0, 0, padding, padding, 0, 0, padding, padding})});
  }
  if (!filters.signs) bordered = graph_.cast(bordered, OnnxType::kDouble);
  std::string sum;
  auto weights = filters.weights.begin();
  for (size_t i = 0; i < filters.kernel.taps(); ++i) {
    const std::string shifted = strided(bordered, i / filters.kernel.side, i % filters.kernel.side,
                                        filters.kernel.stride, convolution.out);
    for (size_t c = 0; c < in; ++c, weights += length(filters.out)) {
      const std::string plane = in == 1 ? shifted : graph_.slice(shifted, 1, length(c), length(c + 1));
      const std::vector<float> row(weights, weights + length(filters.out));
      if (filters.signs) {
        const std::string product = graph_.node("Mul", {plane, channel_values(row)});
        sum = sum.empty() ? product : graph_.node("Add", {sum, product});
      } else {
        const std::string wide = graph_.cast(channel_values(row), OnnxType::kDouble);
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
                     {graph_.node("Mul", {x, channel_values(norm.factor)}), channel_values(norm.offset)});
}

std::string OnnxLayers::biased(const std::string& x, const LayerRecord& bias) {
  return graph_.node("Add",
                     {x, channel_values(state_.values<float>(bias.name + ".bias", {1, bias.out.channels}))});
}

std::string OnnxLayers::activated(const std::string& x, Activation activation) {
  return activation == Activation::kHardtanh ? graph_.node("Clip", {x, scalar(-1.0f), scalar(1.0f)})
                                             : graph_.node("Relu", {x});
}

std::string OnnxLayers::max_pool(const std::string& x, uint32_t window) {
  const std::vector<int64_t> sides(2, window);
  return graph_.node("MaxPool", {x}, {{"kernel_shape", sides}, {"strides", sides}});
}

std::string OnnxLayers::ordered_sum(const std::string& x, int64_t axis, size_t count) {
  const std::string sums = graph_.node("CumSum", {x, graph_.constant({}, std::vector{axis})});
  return graph_.slice(sums, axis, length(count) - 1, length(count));
}

// In doubles, as 16 sums, which are then added by halves.
std::string OnnxLayers::image_mean(const std::string& x, const LayerShape& image) {
  const size_t count = image.count();
  const std::string by_pixel = graph_.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  const Shape lanes = {-1, length(count / kLanes), length(kLanes), 1};
  const std::string rows = graph_.node("Reshape", {by_pixel, graph_.constant({4}, lanes)});
  std::string sums = ordered_sum(graph_.cast(rows, OnnxType::kDouble), 1, count / kLanes);
  for (int64_t half = length(kLanes) / 2; half > 0; half /= 2)
    sums = graph_.node("Add", {graph_.slice(sums, 2, 0, half), graph_.slice(sums, 2, half, 2 * half)});
  const std::string values = graph_.constant({}, std::vector{static_cast<double>(count)});
  return graph_.cast(graph_.node("Div", {sums, values}), OnnxType::kFloat);
}

std::string OnnxLayers::signs(const std::string& x, const LayerRecord& signs) {
  const std::string mean = signs.mean == SignMean::kRunning
                               ? scalar(state_.values<float>(signs.name + ".mean", {1, 1})[0])
                               : image_mean(x, signs.in);
  return graph_.node("Where", {graph_.node("GreaterOrEqual", {x, mean}), scalar(1.0f), scalar(-1.0f)});
}

std::string OnnxLayers::average_pool(const std::string& x, const LayerRecord& pool) {
  if (pool.window == 0) {
    const size_t pixels = pool.in.pixels();
    const Shape rows = {-1, length(pool.in.channels), length(pixels), 1};
    const std::string by_channel = graph_.node("Reshape", {x, graph_.constant({4}, rows)});
    return graph_.node("Div", {ordered_sum(by_channel, 2, pixels), scalar(static_cast<float>(pixels))});
  }
  std::string sum;
  const size_t pixels = size_t{pool.window} * pool.window;
  for (size_t i = 0; i < pixels; ++i) {
    const std::string shifted = strided(x, i / pool.window, i % pool.window, pool.window, pool.out);
    sum = sum.empty() ? shifted : graph_.node("Add", {sum, shifted});
  }
  return graph_.node("Div", {sum, scalar(static_cast<float>(pixels))});
}

std::string OnnxLayers::dense(const std::string& x, const LayerRecord& dense, Bias bias) {
  const auto inputs = length(dense.in.count());
  const auto units = length(dense.out.channels);
  const auto weights = state_.values<float>(dense.name + ".weights", {dense.in.count(), dense.out.channels});
  std::string flat = graph_.node("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  flat = graph_.node("Reshape", {flat, graph_.constant({2}, std::vector<int64_t>{-1, inputs})});
  const std::string wide = graph_.cast(graph_.constant({inputs, units}, weights), OnnxType::kDouble);
  std::string sums = graph_.node("MatMul", {graph_.cast(flat, OnnxType::kDouble), wide});
  if (bias == Bias::kLearned) {
    const auto values = state_.values<float>(dense.name + ".bias", {1, dense.out.channels});
    sums = graph_.node("Add", {sums, graph_.cast(graph_.constant({1, units}, values), OnnxType::kDouble)});
  }
  return graph_.cast(sums, OnnxType::kFloat);
}

std::string OnnxLayers::as_image(const std::string& x, size_t channels) {
  return graph_.node("Reshape", {x, graph_.constant({4}, std::vector<int64_t>{-1, length(channels), 1, 1})});
}

}  // namespace bitfed
