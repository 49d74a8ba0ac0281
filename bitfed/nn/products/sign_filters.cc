#include "bitfed/nn/products/sign_filters.h"

#include <bit>

namespace bitfed {
namespace {

// Sides of the image that a pixel's patch goes beyond.
enum Beyond : uint8_t { kTop = 1, kBottom = 2, kLeft = 4, kRight = 8 };
constexpr size_t kCases = 16;

bool is_beyond(size_t sides, size_t tap, size_t side) {
  if (side == 1) return false;
  const size_t y = tap / side;
  const size_t x = tap % side;
  return ((sides & kTop) != 0 && y == 0) || ((sides & kBottom) != 0 && y == 2) ||
         ((sides & kLeft) != 0 && x == 0) || ((sides & kRight) != 0 && x == 2);
}

}  // namespace

SignFilters::SignFilters(const ConvolutionKernel& kernel, size_t channels, size_t filters)
    : kernel_(kernel),
      channels_(channels),
      filters_(filters),
      words_(kernel.taps() * pixel_words() * filters),
      bases_(kCases * filters),
      filter_words_(kernel.taps() * pixel_words()) {}

void SignFilters::set(size_t filter, const float* weights) {
  const size_t a_tap = pixel_words();
  binary_kernels().signs_about(weights, kernel_.taps(), channels_, 0, filter_words_.data());
  for (size_t sides = 0; sides < kCases; ++sides) bases_[sides * filters_ + filter] = 0;
  for (size_t tap = 0; tap < kernel_.taps(); ++tap) {
    int32_t ones = 0;
    for (size_t word = tap * a_tap; word < (tap + 1) * a_tap; ++word) {
      words_[word * filters_ + filter] = filter_words_[word];
      ones += std::popcount(filter_words_[word]);
    }
    // Beyond the image all bits are 0: what differs there is added back.
    for (size_t sides = 0; sides < kCases; ++sides) {
      const bool beyond = is_beyond(sides, tap, kernel_.side);
      bases_[sides * filters_ + filter] += beyond ? 2 * ones : static_cast<int32_t>(channels_);
    }
  }
}

SignPatches SignFilters::patches(const uint32_t* image, size_t row_words, const uint32_t* places,
                                 const uint8_t* cases, size_t quads) const {
  return {image,         places,   cases,        quads, kernel_.side, row_words, kernel_.side * pixel_words(),
          words_.data(), filters_, bases_.data()};
}

uint8_t SignFilters::case_of(size_t y, size_t x, size_t height, size_t width) {
  return static_cast<uint8_t>((y == 0 ? kTop : 0) | (y + 1 == height ? kBottom : 0) | (x == 0 ? kLeft : 0) |
                              (x + 1 == width ? kRight : 0));
}

}  // namespace bitfed
