#include "bitfed/nn/packed_network.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <chrono>
#include <cmath>

#include "bitfed/nn/binary_kernels.h"
#include "bitfed/nn/kernels.h"

namespace bitfed {
namespace {

constexpr size_t kSide = 3;

// Sides of the image that a pixel's patch goes beyond.
enum Beyond : uint8_t { kTop = 1, kBottom = 2, kLeft = 4, kRight = 8 };
constexpr size_t kCases = 16;

uint8_t case_of(size_t y, size_t x, size_t height, size_t width) {
  return static_cast<uint8_t>((y == 0 ? kTop : 0) | (y + 1 == height ? kBottom : 0) | (x == 0 ? kLeft : 0) |
                              (x + 1 == width ? kRight : 0));
}

bool is_beyond(uint8_t sides, size_t tap) {
  const size_t y = tap / kSide;
  const size_t x = tap % kSide;
  return ((sides & kTop) != 0 && y == 0) || ((sides & kBottom) != 0 && y == 2) ||
         ((sides & kLeft) != 0 && x == 0) || ((sides & kRight) != 0 && x == 2);
}

Floats floats_of(const std::vector<float>& values) {
  Floats result(values.size());
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

// A value behind a norm is z = clip(round(p + offset)), p = round(sum * factor). Is it, whatever the sum, a
// multiple of 2^-exponent? With |z| at or above 2^(23 - exponent) its own last place is. Below that, and with
// an offset at least four times as large, the two terms have nearly cancelled: p is no smaller than 3/4 of
// the offset, so both are multiples of half the offset's last place. Without an offset z is p, which for
// whole sums is 0 or no smaller than the factor.
bool is_multiple(const FoldedNorm& norm, int exponent, bool whole_sums) {
  const float least = std::ldexp(1.0f, 25 - exponent);
  for (size_t c = 0; c < norm.factor.size(); ++c) {
    const float factor = std::fabs(norm.factor[c]);
    const float offset = std::fabs(norm.offset[c]);
    if (offset >= least) continue;
    if (!(whole_sums && offset == 0 && (factor >= least || factor == 0))) return false;
  }
  return true;
}

// A sum of so many multiples of 2^-exponent within ±1 fits the 53 bits of a double.
int exponent_for(size_t count) {
  return 53 - static_cast<int>(std::bit_width(count));
}

double sum_in_order(const float* values, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]);
  return sum;
}

}  // namespace

PackedNetwork::PackedNetwork(const Numbers& numbers)
    : height_(numbers.height),
      width_(numbers.width),
      channels_(numbers.channels),
      classes_(numbers.classes),
      inputs_(numbers.inputs) {
  size_t filters = numbers.blocks[0].norm.factor.size();
  first_.weights = Matrix(kSide * kSide * channels_, filters);
  std::copy(numbers.blocks[0].signs.begin(), numbers.blocks[0].signs.end(), first_.weights.values.data());
  first_.factor = floats_of(numbers.blocks[0].norm.factor);
  first_.offset = floats_of(numbers.blocks[0].norm.offset);
  for (size_t y = 0; y < 2; ++y) {
    for (size_t x = 0; x < width_; ++x)
      first_.places.push_back(static_cast<uint32_t>((y * (width_ + 2) + x) * channels_));
  }
  size_t height = height_ / 2;
  size_t width = width_ / 2;
  for (size_t i = 1; i < numbers.blocks.size(); ++i) {
    SignBlock block = make_sign_block(numbers.blocks[i], height, width, filters);
    const size_t count = height * width * filters;
    block.exact_mean = is_multiple(numbers.blocks[i - 1].norm, exponent_for(count), i > 1);
    filters = block.filters;
    blocks_.push_back(std::move(block));
    height /= 2;
    width /= 2;
  }
  dense_ = Matrix(height * width * filters, classes_);
  for (size_t row = 0; row < dense_.rows; ++row)
    std::copy_n(numbers.dense.data() + row * classes_, classes_, dense_.row(row));
}

PackedNetwork::SignBlock PackedNetwork::make_sign_block(const Block& block, size_t height, size_t width,
                                                        size_t channels) const {
  SignBlock result;
  result.height = height;
  result.width = width;
  result.channels = channels;
  result.filters = block.norm.factor.size();
  const size_t filters = result.filters;
  const size_t words = result.words();
  result.weights.resize(kSide * kSide * words * filters);
  result.bases.resize(kCases * filters);
  result.factor = Floats(filters);
  result.offset = floats_of(block.norm.offset);
  for (size_t filter = 0; filter < filters; ++filter) {
    // Turned about, a filter gives the negative of its sums: exact, as is the product with the negative
    // factor.
    const bool turned = block.norm.factor[filter] < 0;
    result.factor[filter] = std::fabs(block.norm.factor[filter]);
    for (size_t tap = 0; tap < kSide * kSide; ++tap) {
      int32_t ones = 0;
      for (size_t c = 0; c < channels; ++c) {
        if ((block.signs[(tap * channels + c) * filters + filter] >= 0) == turned) continue;
        result.weights[(tap * words + c / 32) * filters + filter] |= uint32_t{1} << (c % 32);
        ++ones;
      }
      // Beyond the image all bits are 0 and count for nothing: what differs there is added back.
      for (size_t sides = 0; sides < kCases; ++sides) {
        const bool beyond = is_beyond(static_cast<uint8_t>(sides), tap);
        result.bases[sides * filters + filter] += beyond ? 2 * ones : static_cast<int32_t>(channels);
      }
    }
  }
  for (size_t y = 0; y + 1 < height; y += 2) {
    for (size_t x = 0; x + 1 < width; x += 2) {
      for (size_t corner = 0; corner < 4; ++corner) {
        const size_t at_y = y + corner / 2;
        const size_t at_x = x + corner % 2;
        result.places.push_back(static_cast<uint32_t>(at_y * result.row_words() + at_x * words));
        result.cases.push_back(case_of(at_y, at_x, height, width));
      }
    }
  }
  return result;
}

PackedNetwork::Workspace PackedNetwork::make_workspace() const {
  Workspace workspace;
  const size_t filters = first_.weights.columns;
  size_t values = (height_ / 2) * (width_ / 2) * filters;
  size_t words = 0;
  for (const SignBlock& block : blocks_) {
    words = std::max(words, (block.height + 2) * block.row_words());
    values = std::max(values, (block.height / 2) * (block.width / 2) * block.filters);
  }
  workspace.image_ = Floats((height_ + 2) * (width_ + 2) * channels_);
  workspace.rows_ = Floats(2 * width_ * filters);
  workspace.values_ = Floats(values);
  workspace.signs_.resize(words);
  workspace.scores_ = Floats(classes_);
  return workspace;
}

void PackedNetwork::run_first(const uint8_t* pixels, Workspace* workspace) const {
  const NeuralKernels& kernels = neural_kernels();
  const size_t row = (width_ + 2) * channels_;
  for (size_t y = 0; y < height_; ++y) {
    float* to = workspace->image_.data() + (y + 1) * row + channels_;
    for (size_t x = 0; x < width_; ++x) {
      for (size_t c = 0; c < channels_; ++c) *to++ = inputs_[256 * c + *pixels++];
    }
  }
  const size_t filters = first_.weights.columns;
  const size_t depth = kSide * channels_;
  float* sums = workspace->rows_.data();
  for (size_t y = 0; y < height_ / 2; ++y) {
    kernels.multiply_gathered({workspace->image_.data() + 2 * y * row, first_.places.data(), true, false,
                               kSide, row, first_.weights.values.data(), filters, depth * filters, sums,
                               filters, 2 * width_, filters, depth});
    kernels.affine(sums, 2 * width_, filters, first_.factor.data(), first_.offset.data(),
                   Activation::kHardtanh, sums);
    kernels.max_pool(sums, sums + width_ * filters, width_ / 2, filters,
                     workspace->values_.data() + y * (width_ / 2) * filters);
  }
}

void PackedNetwork::run_signs(const SignBlock& block, Workspace* workspace) const {
  const BinaryKernels& kernels = binary_kernels();
  float* values = workspace->values_.data();
  const size_t count = block.height * block.width * block.channels;
  const double sum = block.exact_mean ? kernels.exact_sum(values, count) : sum_in_order(values, count);
  const auto mean = static_cast<float>(sum / static_cast<double>(count));
  uint32_t* signs = workspace->signs_.data();
  std::fill_n(signs, (block.height + 2) * block.row_words(), 0u);
  for (size_t y = 0; y < block.height; ++y) {
    kernels.signs_about(values + y * block.width * block.channels, block.width, block.channels, mean,
                        signs + (y + 1) * block.row_words() + block.words());
  }
  kernels.sign_quads({signs, block.places.data(), block.cases.data(), block.cases.size() / 4, kSide,
                      block.row_words(), kSide * block.words(), block.weights.data(), block.filters,
                      block.bases.data(), block.factor.data(), block.offset.data(), values});
}

void PackedNetwork::run_dense(Workspace* workspace) const {
  neural_kernels().multiply({workspace->values_.data(), dense_.rows, 1, dense_.values.data(), dense_.stride,
                             workspace->scores_.data(), dense_.stride, 1, dense_.stride, dense_.rows});
}

void PackedNetwork::predict(const uint8_t* pixels, Workspace* workspace, float* scores) const {
  run_first(pixels, workspace);
  for (const SignBlock& block : blocks_) run_signs(block, workspace);
  run_dense(workspace);
  std::copy_n(workspace->scores_.data(), classes_, scores);
}

std::vector<double> PackedNetwork::measure_stages() const {
  constexpr int kTurns = 50;
  using Clock = std::chrono::steady_clock;
  Workspace workspace = make_workspace();
  std::vector<uint8_t> pixels(height_ * width_ * channels_);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37);
  // The least of all turns: whatever else the machine does only adds.
  std::vector<double> seconds(blocks_.size() + 2, 1e9);
  for (int turn = 0; turn < kTurns; ++turn) {
    size_t stage = 0;
    Clock::time_point begin = Clock::now();
    const auto finish = [&] {
      const Clock::time_point end = Clock::now();
      seconds[stage] = std::min(seconds[stage], std::chrono::duration<double>(end - begin).count());
      begin = end;
      ++stage;
    };
    run_first(pixels.data(), &workspace);
    finish();
    for (const SignBlock& block : blocks_) {
      run_signs(block, &workspace);
      finish();
    }
    run_dense(&workspace);
    finish();
  }
  return seconds;
}

}  // namespace bitfed
