#include "bitfed/nn/packed_network.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>

#include "bitfed/nn/binary_kernels.h"
#include "bitfed/nn/kernels.h"

namespace bitfed {
namespace {

constexpr size_t kSide = 3;

Floats floats_of(const std::vector<float>& values) {
  Floats result(values.size());
  std::copy(values.begin(), values.end(), result.data());
  return result;
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
    filters = block.filters.count();
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
  const size_t filters = block.norm.factor.size();
  SignBlock result;
  result.height = height;
  result.width = width;
  result.channels = channels;
  result.filters = SignFilters({}, channels, filters);
  result.factor = Floats(filters);
  result.offset = floats_of(block.norm.offset);
  Floats weights(kSide * kSide * channels);
  for (size_t filter = 0; filter < filters; ++filter) {
    // Turned about, a filter gives the negative of its sums: exact, as is the product with the negative
    // factor.
    const float turn = block.norm.factor[filter] < 0 ? -1.0f : 1.0f;
    result.factor[filter] = std::fabs(block.norm.factor[filter]);
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = turn * block.signs[i * filters + filter];
    result.filters.set(filter, weights.data());
  }
  for (size_t y = 0; y + 1 < height; y += 2) {
    for (size_t x = 0; x + 1 < width; x += 2) {
      for (size_t corner = 0; corner < 4; ++corner) {
        const size_t at_y = y + corner / 2;
        const size_t at_x = x + corner % 2;
        result.places.push_back(static_cast<uint32_t>(at_y * result.row_words() + at_x * result.words()));
        result.cases.push_back(SignFilters::case_of(at_y, at_x, height, width));
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
    values = std::max(values, (block.height / 2) * (block.width / 2) * block.filters.count());
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
    kernels.norm_pool(
        {sums, 1, 2, width_, filters, first_.factor.data(), first_.offset.data(), Activation::kHardtanh}, {},
        workspace->values_.data() + y * (width_ / 2) * filters);
  }
}

void PackedNetwork::run_signs(const SignBlock& block, Workspace* workspace) const {
  const BinaryKernels& kernels = binary_kernels();
  float* values = workspace->values_.data();
  const size_t count = block.height * block.width * block.channels;
  const float mean = neural_kernels().mean(values, count, count);
  uint32_t* signs = workspace->signs_.data();
  std::fill_n(signs, (block.height + 2) * block.row_words(), 0u);
  for (size_t y = 0; y < block.height; ++y) {
    kernels.signs_about(values + y * block.width * block.channels, block.width, block.channels, mean,
                        signs + (y + 1) * block.row_words() + block.words());
  }
  kernels.sign_pools(block.filters.patches(signs, block.row_words(), block.places.data(), block.cases.data(),
                                           block.cases.size() / 4),
                     {block.factor.data(), block.offset.data(), values});
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
