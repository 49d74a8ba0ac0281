#include "bitfed/nn/binary/sign_filters.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace bitfed {

SignFilters::AxisCases::AxisCases(const ConvolutionKernel& kernel, size_t pixels) {
  for (size_t i = 0; i < kernel.steps(pixels); ++i) {
    const size_t first = i * kernel.stride;  // of the patch, counted from the padding's first pixel
    const size_t begin = first < kernel.padding() ? kernel.padding() - first : 0;
    const size_t end = std::min(kernel.side, kernel.padding() + pixels - first);
    const auto found = std::find(inside.begin(), inside.end(), Taps{begin, end});
    of_output.push_back(static_cast<uint8_t>(found - inside.begin()));
    if (found == inside.end()) inside.push_back({begin, end});
  }
}

SignFilters::SignFilters(const ConvolutionKernel& kernel, const ImageShape& input, size_t filters)
    : kernel_(kernel),
      channels_(input.channels),
      filters_(filters),
      row_cases_(kernel, input.height),
      column_cases_(kernel, input.width),
      words_(kernel.taps() * pixel_words() * filters),
      bases_(row_cases_.inside.size() * column_cases_.inside.size() * filters),
      filter_words_(kernel.taps() * pixel_words()),
      zero_sums_(kernel.taps()) {
  assert(kernel.side <= kMaxSide);
}

void SignFilters::set(size_t filter, const float* weights) {
  const size_t a_tap = pixel_words();
  binary_kernels().signs_about(weights, kernel_.taps(), channels_, 0, filter_words_.data());
  int32_t all_ones = 0;
  for (size_t tap = 0; tap < kernel_.taps(); ++tap) {
    int32_t ones = 0;
    for (size_t word = tap * a_tap; word < (tap + 1) * a_tap; ++word) {
      words_[word * filters_ + filter] = filter_words_[word];
      ones += std::popcount(filter_words_[word]);
    }
    zero_sums_[tap] = static_cast<int32_t>(channels_) - 2 * ones;
    all_ones += ones;
  }
  // A base is the number of channels for each tap inside the image; for each tap beyond it, it is what the
  // bits that differ from 0 will take away.
  int32_t* base = bases_.data() + filter;
  for (const Taps& rows : row_cases_.inside) {
    for (const Taps& columns : column_cases_.inside) {
      *base = 2 * all_ones + sum_inside(rows, columns);
      base += filters_;
    }
  }
}

int32_t SignFilters::sum_inside(const Taps& rows, const Taps& columns) const {
  int32_t sum = 0;
  for (size_t y = rows.begin; y < rows.end; ++y) {
    for (size_t x = columns.begin; x < columns.end; ++x) sum += zero_sums_[y * kernel_.side + x];
  }
  return sum;
}

SignPatches SignFilters::patches(const uint32_t* image, size_t row_words, const uint32_t* offsets,
                                 const uint8_t* cases, size_t quads) const {
  return {image,         offsets,  cases,        quads, kernel_.side, row_words, kernel_.side * pixel_words(),
          words_.data(), filters_, bases_.data()};
}

}  // namespace bitfed
