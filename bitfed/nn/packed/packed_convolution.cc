#include "bitfed/nn/packed/packed_convolution.h"

#include <algorithm>
#include <cmath>

#include "bitfed/nn/binary/sign_thresholds.h"
#include "bitfed/nn/kernels/kernels.h"

namespace bitfed {

PackedConvolution::PackedConvolution(const Values& values, size_t height, size_t width, size_t channels,
                                     Order order)
    : kernel_(values.kernel),
      order_(order),
      mean_(values.mean),
      border_(values.border.value_or(kernel_.padding())),
      height_(height),
      width_(width),
      channels_(channels),
      out_height_(kernel_.steps(height) / (pools() ? 2 : 1)),
      out_width_(kernel_.steps(width) / (pools() ? 2 : 1)),
      filters_(kernel_, ImageShape{height, width, channels}, values.norm.factor.size()),
      factor_(filters_.count()),
      offset_(filters_.count()) {
  set_filters(values);
  for (size_t pixel = 0; pixel < out_height_ * out_width_; ++pixel) {
    const size_t y = pixel / out_width_;
    const size_t x = pixel % out_width_;
    if (!pools()) add_patch(y, x);
    for (size_t corner = 0; pools() && corner < 4; ++corner)
      add_patch(2 * y + corner / 2, 2 * x + corner % 2);
  }
  while (offsets_.size() % 4 != 0) {
    offsets_.push_back(offsets_.back());
    cases_.push_back(cases_.back());
  }
}

void PackedConvolution::set_filters(const Values& values) {
  const size_t count = filters_.count();
  Floats weights(kernel_.taps() * channels_);
  for (size_t filter = 0; filter < count; ++filter) {
    // A pool's largest sum must give the largest value. Flipped, a filter gives the negative of its sums:
    // exact, as is the product with the negative factor.
    const bool flipped = values.norm.factor[filter] < 0;
    factor_[filter] = std::fabs(values.norm.factor[filter]);
    offset_[filter] = values.norm.offset[filter];
    for (size_t i = 0; i < weights.size(); ++i) {
      const size_t bit = i * count + filter;
      const bool positive = (values.signs[bit / 8] >> (bit % 8) & 1) != 0;
      weights[i] = positive != flipped ? 1.0f : -1.0f;
    }
    filters_.set(filter, weights.data());
  }
}

void PackedConvolution::add_patch(size_t y, size_t x) {
  const size_t first = border_ - kernel_.padding();
  offsets_.push_back(static_cast<uint32_t>((y * kernel_.stride + first) * row_words() +
                                           (x * kernel_.stride + first) * filters_.pixel_words()));
  cases_.push_back(filters_.case_of(y, x));
}

size_t PackedConvolution::output_floats() const {
  return (out_height_ * out_width_ + 3) / 4 * 4 * filters_.count();
}

void PackedConvolution::take_signs(const float* values, uint32_t* signs) const {
  const size_t count = height_ * width_ * channels_;
  const float mean = mean_ ? *mean_ : neural_kernels().mean(values, count, count);
  std::fill_n(signs, sign_words(), 0u);
  for (size_t y = 0; y < height_; ++y) {
    binary_kernels().signs_about(values + y * width_ * channels_, width_, channels_, mean,
                                 signs + (y + border_) * row_words() + border_ * filters_.pixel_words());
  }
}

void PackedConvolution::prepare_signs(const PackedConvolution& next) {
  const std::vector<float> factor(factor_.data(), factor_.data() + filters());
  const std::vector<float> offset(offset_.data(), offset_.data() + filters());
  const auto max_sum = static_cast<int32_t>(kernel_.taps() * channels_);
  thresholds_ = whole_thresholds({factor, offset}, *next.mean_, max_sum);
  next_words_ = next.sign_words();
  const size_t count = pools() ? cases_.size() / 4 : cases_.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t pixel = std::min(i, out_height_ * out_width_ - 1);
    const size_t y = next.border_ + pixel / out_width_;
    const size_t x = next.border_ + pixel % out_width_;
    next_offsets_.push_back(static_cast<uint32_t>(y * next.row_words() + x * next.filters_.pixel_words()));
  }
}

void PackedConvolution::give_signs(const uint32_t* signs, uint32_t* next) const {
  std::fill_n(next, next_words_, 0u);
  binary_kernels().sign_thresholds(patches(signs), {thresholds_.data(), pools(), next_offsets_.data(), next});
}

SignPatches PackedConvolution::patches(const uint32_t* signs) const {
  return filters_.patches(signs, row_words(), offsets_.data(), cases_.data(), cases_.size() / 4);
}

void PackedConvolution::pool(const uint32_t* signs, float* out) const {
  binary_kernels().sign_pools(patches(signs), {factor_.data(), offset_.data(), out});
}

void PackedConvolution::norm(const uint32_t* signs, const float* shortcut, bool clips, float* out) const {
  binary_kernels().sign_norms(patches(signs), {factor_.data(), offset_.data(), shortcut, clips, out});
}

}  // namespace bitfed
