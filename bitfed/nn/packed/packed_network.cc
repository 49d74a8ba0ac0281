#include "bitfed/nn/packed/packed_network.h"

#include <algorithm>

#include "bitfed/base/least_times.h"
#include "bitfed/nn/layers/average_pool.h"
#include "bitfed/nn/kernels/kernels.h"

namespace bitfed {
namespace {

constexpr size_t kSide = 3;  // of the stem

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

}  // namespace

PackedNetwork::PackedNetwork(const Numbers& numbers)
    : height_(numbers.height),
      width_(numbers.width),
      channels_(numbers.channels),
      classes_(numbers.classes),
      inputs_(numbers.inputs),
      stem_(matrix_of(numbers.stem, numbers.stem_norm.factor.size())),
      stem_factor_(floats_of(numbers.stem_norm.factor)),
      stem_offset_(floats_of(numbers.stem_norm.offset)),
      factor_(floats_of(numbers.norm.factor)),
      offset_(floats_of(numbers.norm.offset)),
      dense_(matrix_of(numbers.dense, numbers.classes)),
      bias_(floats_of(numbers.bias)) {
  for (size_t y = 0; y < 2; ++y) {
    for (size_t x = 0; x < width_; ++x)
      stem_places_.push_back(static_cast<uint32_t>((y * (width_ + 2) + x) * channels_));
  }
  if (numbers.residual.empty()) {
    make_pooled(numbers);
  } else {
    make_residual(numbers);
  }
}

void PackedNetwork::make_pooled(const Numbers& numbers) {
  size_t height = height_ / 2;
  size_t width = width_ / 2;
  size_t channels = filters();
  for (const PackedConvolution::Numbers& block : numbers.pooled) {
    const PackedConvolution& made =
        pooled_.emplace_back(block, height, width, channels, PackedConvolution::Order::kPools);
    height = made.height();
    width = made.width();
    channels = made.filters();
  }
  for (size_t i = 0; i + 1 < pooled_.size(); ++i) {
    if (numbers.pooled[i + 1].mean) pooled_[i].prepare_signs(pooled_[i + 1]);
  }
  last_pixels_ = height * width;
}

void PackedNetwork::make_residual(const Numbers& numbers) {
  constexpr auto kRows = PackedConvolution::Order::kRows;
  size_t height = height_;
  size_t width = width_;
  size_t channels = filters();
  for (const Residual& block : numbers.residual) {
    PackedConvolution first(block.first, height, width, channels, kRows);
    PackedConvolution second(block.second, first.height(), first.width(), first.filters(), kRows);
    if (block.second.mean) first.prepare_signs(second);
    std::optional<PackedConvolution> shortcut;
    if (block.shortcut.has_value()) shortcut.emplace(*block.shortcut, height, width, channels, kRows);
    height = second.height();
    width = second.width();
    channels = second.filters();
    residual_.push_back({std::move(first), std::move(second), std::move(shortcut)});
  }
  last_pixels_ = height * width;
}

PackedNetwork::Workspace PackedNetwork::make_workspace() const {
  size_t values = pools() ? (height_ / 2) * (width_ / 2) * filters() : height_ * width_ * filters();
  size_t inner = factor_.size();
  size_t words = 0;
  for (const PackedConvolution& block : pooled_) {
    words = std::max(words, block.sign_words());
    values = std::max(values, block.output_floats());
  }
  for (const ResidualStage& block : residual_) {
    words = std::max({words, block.first.sign_words(), block.second.sign_words()});
    inner = std::max(inner, block.first.output_floats());
    values = std::max(values, block.second.output_floats());
  }
  Workspace workspace;
  workspace.image_ = Floats((height_ + 2) * (width_ + 2) * channels_);
  workspace.rows_ = Floats(2 * width_ * filters());
  workspace.values_ = Floats(values);
  workspace.inner_ = Floats(inner);
  workspace.signs_.resize(words);
  workspace.next_signs_.resize(words);
  workspace.scores_ = Floats(dense_.stride);
  return workspace;
}

void PackedNetwork::load(const uint8_t* pixels, Workspace* workspace) const {
  const size_t row = (width_ + 2) * channels_;
  for (size_t y = 0; y < height_; ++y) {
    float* to = workspace->image_.data() + (y + 1) * row + channels_;
    for (size_t x = 0; x < width_; ++x) {
      for (size_t c = 0; c < channels_; ++c) *to++ = inputs_[256 * c + *pixels++];
    }
  }
}

// Two rows at a time, which stay in the nearest cache between convolution and norm.
void PackedNetwork::run_stem(Workspace* workspace) const {
  const NeuralKernels& kernels = neural_kernels();
  const size_t row = (width_ + 2) * channels_;
  const size_t depth = kSide * channels_;
  float* sums = workspace->rows_.data();
  float* out = workspace->values_.data();
  const size_t height = pools() ? height_ / 2 * 2 : height_;
  for (size_t y = 0; y < height; y += 2) {
    const size_t rows = std::min<size_t>(2, height - y);
    kernels.multiply_gathered({workspace->image_.data() + y * row, stem_places_.data(), nullptr, false, kSide,
                               row, stem_.values.data(), sums, filters(), rows * width_, filters(), depth});
    if (pools()) {
      kernels.norm_pool({sums, 1, 2, width_, filters(), stem_factor_.data(), stem_offset_.data(),
                         Activation::kHardtanh, nullptr},
                        {}, out + y / 2 * (width_ / 2) * filters());
    } else {
      kernels.affine(sums, rows * width_, filters(), stem_factor_.data(), stem_offset_.data(),
                     Activation::kHardtanh, out + y * width_ * filters());
    }
  }
}

void PackedNetwork::run_dense(Workspace* workspace) const {
  const NeuralKernels& kernels = neural_kernels();
  const float* inputs = workspace->values_.data();
  if (!pools()) {
    float* average = workspace->inner_.data();
    average_pixels(inputs, last_pixels_, factor_.size(), average);
    kernels.affine(average, 1, factor_.size(), factor_.data(), offset_.data(), Activation::kNone, average);
    inputs = average;
  }
  kernels.multiply({inputs, dense_.rows, 1, dense_.values.data(), dense_.stride, workspace->scores_.data(),
                    dense_.stride, 1, dense_.stride, dense_.rows});
  for (size_t i = 0; i < bias_.size(); ++i) workspace->scores_[i] += bias_[i];
}

template <typename Finished>
void PackedNetwork::run(const uint8_t* pixels, Workspace* workspace, Finished finished) const {
  size_t layer = 0;
  load(pixels, workspace);
  run_stem(workspace);
  finished(layer++);
  float* values = workspace->values_.data();
  float* inner = workspace->inner_.data();
  uint32_t* signs = workspace->signs_.data();
  uint32_t* next_signs = workspace->next_signs_.data();
  for (size_t i = 0; i < pooled_.size(); ++i) {
    const PackedConvolution& block = pooled_[i];
    if (i == 0 || !pooled_[i - 1].gives_signs()) block.take_signs(values, signs);
    if (block.gives_signs()) {
      pooled_[i + 1].clear_signs(next_signs);
      block.give_signs(signs, next_signs);
      std::swap(signs, next_signs);
    } else {
      block.pool(signs, values);
    }
    finished(layer++);
  }
  for (const ResidualStage& block : residual_) {
    block.first.take_signs(values, signs);
    if (block.first.gives_signs()) {
      block.second.clear_signs(next_signs);
      block.first.give_signs(signs, next_signs);
    } else {
      block.first.norm(signs, nullptr, true, inner);
    }
    finished(layer);
    if (block.shortcut.has_value()) {
      block.shortcut->norm(signs, nullptr, false, values);
      finished(layer + 2);
    }
    if (!block.first.gives_signs()) block.second.take_signs(inner, next_signs);
    block.second.norm(next_signs, values, true, values);
    finished(layer + 1);
    layer += block.shortcut.has_value() ? 3 : 2;
  }
  run_dense(workspace);
  finished(layer);
}

void PackedNetwork::predict(const uint8_t* pixels, Workspace* workspace, float* scores) const {
  run(pixels, workspace, [](size_t) {});
  std::copy_n(workspace->scores_.data(), classes_, scores);
}

std::vector<double> PackedNetwork::measure_layers() const {
  Workspace workspace = make_workspace();
  std::vector<uint8_t> pixels(height_ * width_ * channels_);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37);
  LeastTimes times;
  for (int turn = 0; turn < LeastTimes::kTurns; ++turn) {
    times.begin();
    run(pixels.data(), &workspace, [&](size_t layer) { times.finished(layer); });
  }
  return times.seconds();
}

}  // namespace bitfed
