#include "bitfed/nn/packed/packed_convolution.h"

#include <algorithm>
#include <cmath>

#include "bitfed/nn/kernels/kernels.h"
#include "bitfed/nn/binary/sign_thresholds.h"

namespace bitfed {

PackedConvolution::PackedConvolution(const Numbers& numbers, size_t height, size_t width, size_t channels,
                                     Order order)
    : kernel_(numbers.kernel),
      order_(order),
      mean_(numbers.mean),
      height_(height),
      width_(width),
      channels_(channels),
      out_height_(order == Order::kPools ? height / 2 : kernel_.steps(height)),
      out_width_(order == Order::kPools ? width / 2 : kernel_.steps(width)),
      filters_(kernel_, channels, numbers.norm.factor.size()),
      factor_(filters_.count()),
      offset_(filters_.count()) {
  set_filters(numbers);
  if (order == Order::kPools) {
    for (size_t pool = 0; pool < out_height_ * out_width_; ++pool) {
      for (size_t corner = 0; corner < 4; ++corner)
        add_place(2 * (pool / out_width_) + corner / 2, 2 * (pool % out_width_) + corner % 2);
    }
  } else {
    for (size_t pixel = 0; pixel < out_height_ * out_width_; ++pixel)
      add_place(pixel / out_width_ * kernel_.stride, pixel % out_width_ * kernel_.stride);
    while (places_.size() % 4 != 0) {
      places_.push_back(places_.back());
      cases_.push_back(cases_.back());
    }
  }
}

void PackedConvolution::set_filters(const Numbers& numbers) {
  const size_t count = filters_.count();
  Floats weights(kernel_.taps() * channels_);
  for (size_t filter = 0; filter < count; ++filter) {
    // A pool's largest sum must give the largest value. Turned about, a filter gives the negative of its
    // sums: exact, as is the product with the negative factor.
    const bool turned = numbers.norm.factor[filter] < 0;
    factor_[filter] = std::fabs(numbers.norm.factor[filter]);
    offset_[filter] = numbers.norm.offset[filter];
    for (size_t i = 0; i < weights.size(); ++i) {
      const size_t bit = i * count + filter;
      const bool positive = (numbers.signs[bit / 8] >> (bit % 8) & 1) != 0;
      weights[i] = positive != turned ? 1.0f : -1.0f;
    }
    filters_.set(filter, weights.data());
  }
}

// Of the patch about the pixel (y, x); a patch of a single pixel does not reach into the border.
void PackedConvolution::add_place(size_t y, size_t x) {
  const size_t first = 1 - kernel_.side / 2;
  places_.push_back(static_cast<uint32_t>((y + first) * row_words() + (x + first) * filters_.pixel_words()));
  cases_.push_back(kernel_.side == 1 ? 0 : SignFilters::case_of(y, x, height_, width_));
}

size_t PackedConvolution::output_floats() const {
  return (out_height_ * out_width_ + 3) / 4 * 4 * filters_.count();
}

void PackedConvolution::take_signs(const float* values, uint32_t* signs) const {
  const size_t count = height_ * width_ * channels_;
  const float mean = mean_ ? *mean_ : neural_kernels().mean(values, count, count);
  clear_signs(signs);
  for (size_t y = 0; y < height_; ++y) {
    binary_kernels().signs_about(values + y * width_ * channels_, width_, channels_, mean,
                                 signs + (y + 1) * row_words() + filters_.pixel_words());
  }
}

void PackedConvolution::clear_signs(uint32_t* signs) const {
  std::fill_n(signs, sign_words(), 0u);
}

void PackedConvolution::prepare_signs(const PackedConvolution& next) {
  const std::vector<float> factor(factor_.data(), factor_.data() + filters());
  const std::vector<float> offset(offset_.data(), offset_.data() + filters());
  const auto most = static_cast<int32_t>(kernel_.taps() * channels_);
  least_ = whole_thresholds({factor, offset}, *next.mean_, most);
  const size_t places = order_ == Order::kPools ? cases_.size() / 4 : cases_.size();
  for (size_t i = 0; i < places; ++i) {
    const size_t pixel = std::min(i, out_height_ * out_width_ - 1);
    const size_t y = 1 + pixel / out_width_;
    const size_t x = 1 + pixel % out_width_;
    next_places_.push_back(static_cast<uint32_t>(y * next.row_words() + x * next.filters_.pixel_words()));
  }
}

void PackedConvolution::give_signs(const uint32_t* signs, uint32_t* next) const {
  binary_kernels().sign_thresholds(patches(signs),
                                   {least_.data(), order_ == Order::kPools, next_places_.data(), next});
}

SignPatches PackedConvolution::patches(const uint32_t* signs) const {
  return filters_.patches(signs, row_words(), places_.data(), cases_.data(), cases_.size() / 4);
}

void PackedConvolution::pool(const uint32_t* signs, float* out) const {
  binary_kernels().sign_pools(patches(signs), {factor_.data(), offset_.data(), out});
}

void PackedConvolution::norm(const uint32_t* signs, const float* shortcut, bool clips, float* out) const {
  binary_kernels().sign_norms(patches(signs), {factor_.data(), offset_.data(), shortcut, clips, out});
}

}  // namespace bitfed
