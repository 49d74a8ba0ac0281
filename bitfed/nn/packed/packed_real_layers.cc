#include "bitfed/nn/packed/packed_real_layers.h"

#include <algorithm>

#include "bitfed/nn/kernels/kernels.h"
#include "bitfed/nn/layers/average_pool.h"

namespace bitfed {
namespace {

Floats floats_of(const std::vector<float>& values) {
  Floats result(values.size());
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

Matrix matrix_of(const std::vector<float>& values, size_t columns) {
  Matrix matrix(values.size() / columns, columns);
  for (size_t row = 0; row < matrix.rows; ++row)
    std::copy_n(values.data() + row * columns, columns, matrix.row(row));
  return matrix;
}

// Calls reduce(first, pixel, out) for every pixel of every window in row-major order; `first` of a window's
// first.
template <typename Reduce>
void for_each_window(const float* x, const ImageShape& input, size_t window, float* out, Reduce reduce) {
  for (size_t y = 0; y < input.height / window; ++y) {
    for (size_t column = 0; column < input.width / window; ++column, out += input.channels) {
      for (size_t i = 0; i < window * window; ++i) {
        const size_t pixel = (y * window + i / window) * input.width + column * window + i % window;
        reduce(i == 0, x + pixel * input.channels, out);
      }
    }
  }
}

void max_windows(const float* x, const ImageShape& input, size_t window, float* out) {
  for_each_window(x, input, window, out, [&](bool first, const float* pixel, float* largest) {
    for (size_t c = 0; c < input.channels; ++c)
      largest[c] = first || pixel[c] > largest[c] ? pixel[c] : largest[c];
  });
}

void average_windows(const float* x, const ImageShape& input, size_t window, float* out) {
  if (window == 0) return average_pixels(x, input.pixels(), input.channels, out);
  for_each_window(x, input, window, out, [&](bool first, const float* pixel, float* sum) {
    for (size_t c = 0; c < input.channels; ++c) sum[c] = (first ? 0 : sum[c]) + pixel[c];
  });
  const size_t count = (input.height / window) * (input.width / window) * input.channels;
  for (size_t i = 0; i < count; ++i) out[i] /= static_cast<float>(window * window);
}

class RealConvolution : public PackedLayer {
 public:
  explicit RealConvolution(const PackedRealConvolution& from)
      : from_(from),
        filters_(from.norm.factor.size()),
        row_((from.width + 2 * from.kernel.padding()) * from.channels),
        out_height_(from.kernel.steps(from.height)),
        out_width_(from.kernel.steps(from.width)),
        weights_(matrix_of(from.weights, filters_)),
        factor_(floats_of(from.norm.factor)),
        offset_(floats_of(from.norm.offset)) {
    from_.weights.clear();
    for (size_t y = 0; y < kRows; ++y) {
      for (size_t x = 0; x < out_width_; ++x)
        offsets_.push_back(
            static_cast<uint32_t>(y * from.kernel.stride * row_ + x * from.kernel.stride * from.channels));
    }
  }

  PackedSizes sizes() const override {
    const size_t pixels = from_.pools ? (out_height_ / 2) * (out_width_ / 2) : out_height_ * out_width_;
    return {.values = pixels * filters_,
            .inner = kRows * out_width_ * filters_,
            .bordered = (from_.height + 2 * from_.kernel.padding()) * row_};
  }

  // Two rows at a time, which stay in the nearest cache between convolution and norm.
  void run(PackedWorkspace* workspace) const override {
    load(workspace);
    const NeuralKernels& kernels = neural_kernels();
    float* sums = workspace->inner.data();
    float* out = workspace->values.data();
    const size_t side = from_.kernel.side;
    const size_t height = from_.pools ? out_height_ / 2 * 2 : out_height_;
    for (size_t y = 0; y < height; y += kRows) {
      const size_t pixels = std::min(kRows, height - y) * out_width_;
      kernels.multiply_gathered({workspace->bordered.data() + y * from_.kernel.stride * row_, offsets_.data(),
                                 nullptr, false, side, row_, weights_.values.data(), sums, filters_, pixels,
                                 filters_, side * from_.channels});
      if (from_.pools) {
        kernels.norm_pool(
            {sums, 1, kRows, out_width_, filters_, factor_.data(), offset_.data(), from_.activation, nullptr},
            {}, out + y / 2 * (out_width_ / 2) * filters_);
      } else {
        kernels.affine(sums, pixels, filters_, factor_.data(), offset_.data(), from_.activation,
                       out + y * out_width_ * filters_);
      }
    }
    workspace->finished(from_.product);
  }

 private:
  static constexpr size_t kRows = 2;

  // The image with its padding. Other layers use the same memory: the padding is cleared every time.
  void load(PackedWorkspace* workspace) const {
    const size_t padding = from_.kernel.padding();
    const size_t side = padding * from_.channels;
    const size_t row_values = from_.width * from_.channels;
    float* to = std::fill_n(workspace->bordered.data(), padding * row_, 0.0f);
    for (size_t y = 0; y < from_.height; ++y) {
      to = std::fill_n(to, side, 0.0f);
      to = from_.inputs.empty() ? std::copy_n(workspace->values.data() + y * row_values, row_values, to)
                                : load_pixels(workspace->pixels + y * row_values, to);
      to = std::fill_n(to, side, 0.0f);
    }
    std::fill_n(to, padding * row_, 0.0f);
  }

  float* load_pixels(const uint8_t* pixels, float* to) const {
    for (size_t x = 0; x < from_.width; ++x) {
      for (size_t c = 0; c < from_.channels; ++c) *to++ = from_.inputs[256 * c + *pixels++];
    }
    return to;
  }

  PackedRealConvolution from_;  // without its weights
  size_t filters_;
  size_t row_;  // floats of a row of the padded input
  size_t out_height_, out_width_;
  Matrix weights_;  // one row per input
  Floats factor_, offset_;
  std::vector<uint32_t> offsets_;  // where the patches of two rows of the output begin
};

class Affine : public PackedLayer {
 public:
  Affine(size_t pixels, const FoldedNorm& norm, Activation activation)
      : pixels_(pixels),
        channels_(norm.factor.size()),
        activation_(activation),
        factor_(floats_of(norm.factor)),
        offset_(floats_of(norm.offset)) {}

  PackedSizes sizes() const override { return {.values = pixels_ * channels_}; }
  void run(PackedWorkspace* workspace) const override {
    float* values = workspace->values.data();
    neural_kernels().affine(values, pixels_, channels_, factor_.data(), offset_.data(), activation_, values);
  }

 private:
  size_t pixels_, channels_;
  Activation activation_;
  Floats factor_, offset_;
};

class Pool : public PackedLayer {
 public:
  using Function = void (*)(const float* x, const ImageShape& input, size_t window, float* out);
  Pool(const ImageShape& input, size_t window, Function pool) : input_(input), window_(window), pool_(pool) {}

  PackedSizes sizes() const override {
    const size_t pixels = window_ == 0 ? 1 : (input_.height / window_) * (input_.width / window_);
    return {.values = pixels * input_.channels, .inner = pixels * input_.channels};
  }
  void run(PackedWorkspace* workspace) const override {
    pool_(workspace->values.data(), input_, window_, workspace->inner.data());
    std::swap(workspace->values, workspace->inner);
  }

 private:
  ImageShape input_;
  size_t window_;
  Function pool_;
};

class PackedDense : public PackedLayer {
 public:
  PackedDense(size_t product, const std::vector<float>& weights, size_t units, const std::vector<float>& bias)
      : product_(product), weights_(matrix_of(weights, units)), bias_(bias) {}

  PackedSizes sizes() const override { return {.values = weights_.stride, .inner = weights_.stride}; }
  void run(PackedWorkspace* workspace) const override {
    float* out = workspace->inner.data();
    neural_kernels().multiply({workspace->values.data(), weights_.rows, 1, weights_.values.data(),
                               weights_.stride, out, weights_.stride, 1, weights_.stride, weights_.rows});
    for (size_t i = 0; i < bias_.size(); ++i) out[i] += bias_[i];
    std::swap(workspace->values, workspace->inner);
    workspace->finished(product_);
  }

 private:
  size_t product_;
  Matrix weights_;
  std::vector<float> bias_;
};

}  // namespace

std::unique_ptr<PackedLayer> make_packed(const PackedRealConvolution& convolution) {
  return std::make_unique<RealConvolution>(convolution);
}

std::unique_ptr<PackedLayer> make_packed_affine(size_t pixels, const FoldedNorm& norm,
                                                Activation activation) {
  return std::make_unique<Affine>(pixels, norm, activation);
}

std::unique_ptr<PackedLayer> make_packed_max_pool(const ImageShape& input, size_t window) {
  return std::make_unique<Pool>(input, window, max_windows);
}

std::unique_ptr<PackedLayer> make_packed_average_pool(const ImageShape& input, size_t window) {
  return std::make_unique<Pool>(input, window, average_windows);
}

std::unique_ptr<PackedLayer> make_packed_dense(size_t product, const std::vector<float>& weights,
                                               size_t units, const std::vector<float>& bias) {
  return std::make_unique<PackedDense>(product, weights, units, bias);
}

}  // namespace bitfed
