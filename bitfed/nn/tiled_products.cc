#include "bitfed/nn/tiled_products.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace bitfed {
namespace {

// A chunk of images and the weights' sums, if they have to wait for the next chunk, fit the second-level
// cache together.
constexpr size_t kChunkBytes = size_t{384} * 1024;
constexpr size_t kMostSumBytes = size_t{1024} * 1024;

size_t quads_of(size_t images) {
  return (images + 3) / 4;
}

}  // namespace

TiledProducts::TiledProducts(const TileKernels& kernels, size_t batch, const ImageShape& input,
                             const ImageShape& output, const ConvolutionKernel& kernel)
    : kernels_(kernels),
      input_(input),
      output_(output),
      kernel_(kernel),
      pitch_(output.width + 2),
      channels_(whole_tiles(input.channels, 2 * kTileRows)),
      filter_bytes_(whole_tiles(output.channels, kTileBytes)),
      positions_(whole_tiles(output.height * pitch_, kTileRows)),
      block_bytes_((output.height + 2) * pitch_ * kTileBytes),
      image_bytes_(filter_bytes_ / kTileBytes * block_bytes_),
      no_gradient_(output.image_floats()) {
  // The first patch's last tap is so far away.
  const size_t furthest = ((kernel.side / 2 + 1) / kernel.stride) * (pitch_ + 1);
  sign_block_bytes_ = (positions_ + furthest) * kTileBytes;
  std::map<std::pair<size_t, size_t>, size_t> planes;
  const size_t border = 1 - kernel.side / 2;
  for (size_t tap = 0; tap < kernel.taps(); ++tap) {
    const size_t y = tap / kernel.side + border;
    const size_t x = tap % kernel.side + border;
    const auto [plane, is_new] = planes.try_emplace({y % kernel.stride, x % kernel.stride}, planes_.size());
    if (is_new) planes_.push_back(plane_places(plane->first.first, plane->first.second));
    const size_t position = y / kernel.stride * pitch_ + x / kernel.stride;
    assert(position <= furthest);
    shifts_.push_back(plane->second * channels_ / kTileRows * sign_block_bytes_ + position * kTileBytes);
  }
  size_t weights = 0;
  for (const ConvolutionPhase& phase : convolution_phases(1, input, output.with_border(1), kernel))
    weights = add_phase(phase, weights);
  weights_ = Aligned<int8_t>(weights);
  plan_chunks(batch);
  // The last tile's patches reach a little further than the image.
  const size_t beyond = 2 * pitch_ + 2 + kTileRows;
  high_ = Aligned<int8_t>(4 * chunk_quads_ * image_bytes_ + beyond * kTileBytes);
  low_ = Aligned<uint8_t>(high_.size());
  quads_high_ = Aligned<int8_t>(chunk_quads_ * 4 * positions_ * output.channels);
  quads_low_ = Aligned<uint8_t>(quads_high_.size());
  signs_ = Aligned<int8_t>(chunk_quads_ * planes_.size() * channels_ / kTileRows * sign_block_bytes_);
  places_ = std::vector<uint32_t>(positions_, kNoPixel);
  for (size_t pixel = 0; pixel < output.pixels(); ++pixel)
    places_[pixel / output.width * pitch_ + pixel % output.width] =
        static_cast<uint32_t>(pixel * output.channels);
}

void TiledProducts::plan_chunks(size_t batch) {
  const size_t filter_sums = 2 * kernel_.taps() * channels_;  // of high and of low bytes
  const size_t quad_bytes = 8 * (image_bytes_ + positions_ * output_.channels) +
                            planes_.size() * channels_ / kTileRows * sign_block_bytes_;
  const bool sums_can_wait = output_.channels * filter_sums * sizeof(int32_t) <= kMostSumBytes;
  chunk_quads_ = quads_of(batch);
  if (sums_can_wait) chunk_quads_ = std::min(chunk_quads_, std::max<size_t>(1, kChunkBytes / quad_bytes));
  // In one chunk the sums of 16 filters are done with before the next ones'.
  sums_ = Aligned<int32_t>((chunk_quads_ < quads_of(batch) ? output_.channels : kTileRows) * filter_sums);
}

std::vector<uint32_t> TiledProducts::plane_places(size_t y, size_t x) const {
  std::vector<uint32_t> places(sign_block_bytes_ / kTileBytes, kNoPixel);
  const size_t words = Images::words_of(input_.channels);
  for (size_t position = 0; position < places.size(); ++position) {
    const size_t row = y + position / pitch_ * kernel_.stride;
    const size_t column = x + position % pitch_ * kernel_.stride;
    const bool in_border = row == 0 || column == 0;
    if (!in_border && row <= input_.height && column <= input_.width)
      places[position] = static_cast<uint32_t>((row * (input_.width + 2) + column) * words);
  }
  return places;
}

// Returns where the next phase's weights begin.
size_t TiledProducts::add_phase(const ConvolutionPhase& geometry, size_t weights) {
  Phase phase{geometry, {}, 0, weights};
  if (!geometry.pixels.empty()) phase.first = geometry.pixels[0] / output_.channels * kTileBytes;
  for (size_t row = 0; row < geometry.rows.size(); ++row) {
    for (size_t column = 0; column < geometry.columns.size(); ++column)
      phase.shifts.push_back((row * pitch_ + column) * kTileBytes);
  }
  weights += phase.shifts.size() * filter_bytes_ * input_.channels;
  phases_.push_back(std::move(phase));
  return weights;
}

void TiledProducts::take_weights(const Matrix& signs) {
  for (const Phase& phase : phases_) pack_weights(phase, signs);
}

// Four filters in turn, and behind each other the 16 quads of 64 filters: a tile for 16 channels.
void TiledProducts::pack_weights(const Phase& phase, const Matrix& signs) {
  const size_t tap_bytes = filter_bytes_ * kTileRows;
  int8_t* to = weights_.data() + phase.weights;
  for (const size_t row : phase.geometry.rows) {
    for (const size_t column : phase.geometry.columns) {
      const size_t at = (row * kernel_.side + column) * input_.channels;
      for (size_t f = 0; f < signs.rows; f += 4) {
        const float* const rows[4] = {signs.row(f) + at, signs.row(f + 1) + at, signs.row(f + 2) + at,
                                      signs.row(f + 3) + at};
        kernels_.interleave(rows, input_.channels, to + f * kTileRows, phase.shifts.size() * tap_bytes);
      }
      to += tap_bytes;
    }
  }
}

void TiledProducts::go_back(const Images& gradient, const Images& input, size_t images, float factor,
                            Matrix* of_weights, Images* of_input) {
  for (size_t first = 0; first < images; first += 4 * chunk_quads_) {
    const Some some{first, std::min(4 * chunk_quads_, images - first)};
    take_gradient(gradient, some, factor);
    take_input(input, some);
    add_weight_gradient(some, images, factor, of_weights);
    if (of_input == nullptr) continue;
    for (const Phase& phase : phases_) phase_gradient(phase, some, factor, of_input);
  }
}

void TiledProducts::take_gradient(const Images& gradient, const Some& some, float factor) {
  const size_t behind_border = (pitch_ + 1) * kTileBytes;
  for (size_t quad = 0; quad < quads_of(some.count); ++quad) {
    GradientSplit split{};
    for (size_t i = 0; i < 4; ++i) {
      const size_t image = 4 * quad + i;
      split.images[i] = image < some.count ? gradient.row(some.first + image, 0) : no_gradient_.data();
      split.high[i] = high_.data() + image * image_bytes_ + behind_border;
      split.low[i] = low_.data() + image * image_bytes_ + behind_border;
    }
    split.places = places_.data();
    split.positions = positions_;
    split.channels = output_.channels;
    split.factor = factor;
    split.block_step = block_bytes_;
    split.quads_high = quads_high_.data() + 4 * quad * positions_ * output_.channels;
    split.quads_low = quads_low_.data() + 4 * quad * positions_ * output_.channels;
    kernels_.split(split);
  }
}

void TiledProducts::take_input(const Images& input, const Some& some) {
  int8_t* to = signs_.data();
  for (size_t quad = 0; quad < quads_of(some.count); ++quad) {
    const uint32_t* four[4];
    for (size_t i = 0; i < 4; ++i) {
      // Beyond the last image any signs do: its gradient is nothing.
      const size_t image = some.first + std::min(4 * quad + i, some.count - 1);
      four[i] = input.words() + image * input.image_words();
    }
    for (const std::vector<uint32_t>& places : planes_) {
      kernels_.gather(four, places.data(), places.size(), input_.channels, to, sign_block_bytes_);
      to += channels_ / kTileRows * sign_block_bytes_;
    }
  }
}

void TiledProducts::add_weight_gradient(const Some& some, size_t images, float factor, Matrix* gradient) {
  const size_t filter_sums = 2 * shifts_.size() * channels_;
  kernels_.sum({.high = quads_high_.data(),
                .low = quads_low_.data(),
                .filters = output_.channels,
                .signs = signs_.data(),
                .signs_step = planes_.size() * channels_ / kTileRows * sign_block_bytes_,
                .block_step = sign_block_bytes_,
                .channels = channels_,
                .shifts = shifts_.data(),
                .taps = shifts_.size(),
                .quads = quads_of(some.count),
                .positions = positions_,
                .sums = sums_.data(),
                .sums_step = sums_.size() > kTileRows * filter_sums ? kTileRows * filter_sums : 0,
                .adds = some.first > 0,
                .ends = some.first + some.count == images,
                .factor = 1 / factor,
                .c = gradient->row(0),
                .channels_wanted = input_.channels});
}

void TiledProducts::phase_gradient(const Phase& phase, const Some& some, float factor, Images* gradient) {
  const ConvolutionPhase& geometry = phase.geometry;
  if (geometry.height == 0 || geometry.width == 0) return;
  const ImageShape& shape = gradient->shape();
  const size_t together = std::max<size_t>(1, kChunkBytes / (2 * image_bytes_));
  for (size_t i = 0; i < some.count; i += together) {
    const size_t at = i * image_bytes_ + phase.first;
    kernels_.multiply(
        {.high = high_.data() + at,
         .low = low_.data() + at,
         .images = std::min(together, some.count - i),
         .image_step = image_bytes_,
         .blocks = filter_bytes_ / kTileBytes,
         .block_step = block_bytes_,
         .shifts = phase.shifts.data(),
         .taps = phase.shifts.size(),
         .weights = weights_.data() + phase.weights,
         .channels = input_.channels,
         .height = geometry.height,
         .width = geometry.width,
         .pitch = pitch_,
         .factor = 1 / factor,
         .c = gradient->row(some.first + i, geometry.y) + geometry.x * input_.channels,
         .c_image_step = shape.image_floats(),
         .row_step = geometry.stride * shape.row_floats(),
         .pixel_step = geometry.stride * input_.channels,
         .streams = gradient->batch() * shape.image_floats() * sizeof(float) >= kStreamedBytes});
  }
}

}  // namespace bitfed
