#include "bitfed/nn/layers/max_pool.h"

#include <algorithm>
#include <cassert>

namespace bitfed {
namespace {

// Registers that every instruction set has.
typedef float FourFloats __attribute__((vector_size(16)));
typedef int32_t FourIndexes __attribute__((vector_size(16)));
constexpr size_t kFour = 4;

template <typename Four, typename Number>
Four& at(Number* numbers) {
  return *reinterpret_cast<Four*>(numbers);
}

FourIndexes all(int32_t index) {
  return FourIndexes{index, index, index, index};
}

}  // namespace

MaxPool::MaxPool(size_t batch, const ImageShape& input, size_t window)
    : Layer(batch, {input.height / window, input.width / window, input.channels, 0, input.padding_channels}),
      window_(window),
      chosen_(batch * output_.shape().image_floats()) {
  assert(input.border == 0 && input.channels % kFour == 0 && output_.shape().pixels() > 0);
}

void MaxPool::forward(const Images& input, size_t images, Pass /*pass*/) {
  const ImageShape& shape = output_.shape();
  const size_t row_floats = input.shape().row_floats();
  int32_t* chosen = chosen_.data();
  float* largest = output_.data();
  for (size_t row = 0; row < images * shape.height; ++row) {
    const float* window = input.row(row / shape.height, row % shape.height * window_);
    for (size_t x = 0; x < shape.width; ++x, window += window_ * shape.channels) {
      for (size_t c = 0; c < shape.channels; c += kFour, largest += kFour, chosen += kFour) {
        auto best = at<const FourFloats>(window + c);
        FourIndexes best_index = all(0);
        FourIndexes index = all(0);
        for (size_t y = 0; y < window_; ++y) {
          const float* line = window + y * row_floats + c;
          for (size_t i = 0; i < window_; ++i, index += 1) {
            const auto value = at<const FourFloats>(line + i * shape.channels);
            const FourIndexes is_larger = value > best;
            best = is_larger ? value : best;
            best_index = is_larger ? index : best_index;
          }
        }
        at<FourFloats>(largest) = best;
        at<FourIndexes>(chosen) = best_index;
      }
    }
  }
}

void MaxPool::backward(const Images& /*input*/, size_t images, Images* input_gradient) {
  if (input_gradient == nullptr) return;
  const ImageShape& shape = output_.shape();
  const ImageShape& in = input_gradient->shape();
  if (in.height % window_ != 0 || in.width % window_ != 0)  // what is left over
    std::fill_n(input_gradient->data(), images * in.image_floats(), 0.0f);
  const int32_t* chosen = chosen_.data();
  const float* gradient = output_gradient().data();
  for (size_t row = 0; row < images * shape.height; ++row) {
    for (size_t x = 0; x < shape.width; ++x, gradient += shape.channels, chosen += shape.channels) {
      for (size_t i = 0; i < window_ * window_; ++i) {
        float* to = input_gradient->row(row / shape.height, row % shape.height * window_ + i / window_) +
                    (x * window_ + i % window_) * shape.channels;
        for (size_t c = 0; c < shape.channels; c += kFour) {
          const FourIndexes is_chosen = at<const FourIndexes>(chosen + c) == all(static_cast<int32_t>(i));
          at<FourFloats>(to + c) = is_chosen ? at<const FourFloats>(gradient + c) : FourFloats{};
        }
      }
    }
  }
}

}  // namespace bitfed
