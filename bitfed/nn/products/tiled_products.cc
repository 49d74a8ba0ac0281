#include "bitfed/nn/products/tiled_products.h"

#include <algorithm>
#include <cassert>

namespace bitfed {
namespace {

// A chunk of images and the weights' sums, if the next chunk adds to them, fit the second-level cache
// together.
constexpr size_t kChunkBytes = size_t{384} * 1024;
constexpr size_t kMaxSumBytes = size_t{1280} * 1024;

// Tiles of 16 rows are loaded together: rows a multiple of 4 KB apart, or little more, would fall into few of
// the first-level cache's 64 sets.
size_t row_tiles(size_t tiles) {
  while (tiles > 32 && tiles % 64 < 5) ++tiles;
  return tiles;
}

constexpr size_t kMaxSheetImages = 4;

// The number of images per sheet whose positions fill tiles best.
size_t best_sheet(size_t batch, const ImageShape& shape) {
  const auto tiles = [&](size_t images) {
    return whole_tiles(shape.height * images * (shape.width + 1), kTileRows) / kTileRows;
  };
  size_t best = 1;
  for (size_t images = 2; images <= kMaxSheetImages && 4 * images <= batch; images *= 2) {
    if (tiles(images) * best < tiles(best) * images) best = images;
  }
  return best;
}

}  // namespace

TiledProducts::TiledProducts(const TileKernels& kernels, size_t batch, const ImageShape& input,
                             const ImageShape& output, const ConvolutionKernel& kernel)
    : kernels_(kernels),
      input_(input),
      output_(output),
      kernel_(kernel),
      sheet_images_(best_sheet(batch, output)),
      pitch_(sheet_images_ * (output.width + 1)),
      channels_(whole_tiles(input.channels, 2 * kTileRows)),
      filter_bytes_(whole_tiles(output.channels, kTileBytes)),
      positions_(whole_tiles(output.height * pitch_, kTileRows)),
      row_bytes_(row_tiles(positions_ / kTileRows) * kTileBytes),
      block_bytes_((output.height + 2) * pitch_ * kTileBytes),
      sheet_bytes_(filter_bytes_ / kTileBytes * block_bytes_),
      no_gradient_(sheet_images_ * output.image_floats()),
      last_gradient_(sheet_images_ * output.image_floats()) {
  assert(supports(input, kernel) && sheet_images_ * input.image_floats() < kNoPixel);
  // The distance of the first patch's last tap.
  const size_t furthest = ((kernel.side / 2 + 1) / kernel.stride) * (pitch_ + 1);
  sign_block_bytes_ = (positions_ + furthest) * kTileBytes;
  const size_t border = 1 - kernel.side / 2;
  const size_t s = kernel.stride;
  std::vector<size_t> planes(s * s, SIZE_MAX);  // index in planes_, if a tap meets it
  for (size_t tap = 0; tap < kernel.taps(); ++tap) {
    const size_t y = tap / kernel.side + border;
    const size_t x = tap % kernel.side + border;
    size_t& plane = planes[y % s * s + x % s];
    if (plane == SIZE_MAX) {
      plane = planes_.size();
      planes_.push_back(plane_offsets(y % s, x % s));
    }
    const size_t position = y / s * pitch_ + x / s;
    assert(position <= furthest);
    shifts_.push_back(plane * channels_ / kTileRows * sign_block_bytes_ + position * kTileBytes);
  }
  size_t weights = 0;
  for (const ConvolutionPhase& phase : convolution_phases(1, input, output.with_border(1), kernel))
    weights = add_phase(phase, weights);
  weights_ = Aligned<int8_t>(weights);
  plan_chunks(batch);
  // The last tile's patches reach a little further than the sheet.
  const size_t beyond = 2 * pitch_ + 2 + kTileRows;
  high_ = Aligned<int8_t>(4 * chunk_quads_ * sheet_bytes_ + beyond * kTileBytes);
  low_ = Aligned<uint8_t>(high_.size());
  quads_high_ = Aligned<int8_t>(chunk_quads_ * row_bytes_ * output.channels);
  quads_low_ = Aligned<uint8_t>(quads_high_.size());
  signs_ = Aligned<int8_t>(chunk_quads_ * planes_.size() * channels_ / kTileRows * sign_block_bytes_);
  offsets_ = std::vector<uint32_t>(positions_, kNoPixel);
  for (size_t i = 0; i < sheet_images_ * output.pixels(); ++i) {
    const size_t image = i / output.pixels();
    const size_t y = i / output.width % output.height;
    offsets_[sheet_position(image, y, i % output.width)] = static_cast<uint32_t>(i * output.channels);
  }
  last_signs_ = Images::of_bits(sheet_images_, input);
}

size_t TiledProducts::sheet_position(size_t image, size_t y, size_t x) const {
  return y * pitch_ + image * (output_.width + 1) + x;
}

size_t TiledProducts::quads_of(size_t images) const {
  return (images + 4 * sheet_images_ - 1) / (4 * sheet_images_);
}

void TiledProducts::plan_chunks(size_t batch) {
  const size_t filter_sums = 2 * kernel_.taps() * channels_;  // of high and of low bytes
  const size_t quad_bytes = 8 * sheet_bytes_ + 2 * row_bytes_ * output_.channels +
                            planes_.size() * channels_ / kTileRows * sign_block_bytes_;
  const bool sums_can_wait = output_.channels * filter_sums * sizeof(int32_t) <= kMaxSumBytes;
  chunk_quads_ = quads_of(batch);
  if (sums_can_wait) chunk_quads_ = std::min(chunk_quads_, std::max<size_t>(1, kChunkBytes / quad_bytes));
  // Within one chunk the sums of 16 filters are finished before the next 16 begin.
  sums_ = Aligned<int32_t>((chunk_quads_ < quads_of(batch) ? output_.channels : kTileRows) * filter_sums);
}

std::vector<uint32_t> TiledProducts::plane_offsets(size_t y, size_t x) const {
  std::vector<uint32_t> offsets(sign_block_bytes_ / kTileBytes, kNoPixel);
  const size_t words = Images::words_of(input_.channels);
  for (size_t position = 0; position < offsets.size(); ++position) {
    const size_t image = position % pitch_ / (output_.width + 1);
    const size_t row = y + position / pitch_ * kernel_.stride;
    const size_t column = x + position % (output_.width + 1) * kernel_.stride;
    const bool in_border = row == 0 || column == 0;
    if (in_border || row > input_.height || column > input_.width) continue;
    const size_t image_row = image * (input_.height + 2) + row;
    offsets[position] = static_cast<uint32_t>((image_row * (input_.width + 2) + column) * words);
  }
  return offsets;
}

// Returns the offset of the next phase's weights.
size_t TiledProducts::add_phase(const ConvolutionPhase& geometry, size_t weights) {
  Phase phase{geometry, {}, 0, weights, {}};
  if (!geometry.pixels.empty()) {
    const size_t pixel = geometry.pixels[0] / output_.channels;  // of the output with its border
    const size_t width = output_.width + 2;
    phase.first = sheet_position(0, pixel / width, pixel % width) * kTileBytes;
  }
  for (size_t row = 0; row < geometry.rows.size(); ++row) {
    for (size_t column = 0; column < geometry.columns.size(); ++column)
      phase.shifts.push_back((row * pitch_ + column) * kTileBytes);
  }
  phase.offsets.resize(whole_tiles(geometry.height * pitch_, kTileRows), kNoPixel);
  for (size_t i = 0; i < sheet_images_ * geometry.height * geometry.width; ++i) {
    const size_t image = i / geometry.width / geometry.height;
    const size_t y = i / geometry.width % geometry.height;
    const size_t x = i % geometry.width;
    const size_t row = image * input_.height + geometry.y + y * geometry.stride;
    const size_t column = geometry.x + x * geometry.stride;
    phase.offsets[sheet_position(image, y, x)] =
        static_cast<uint32_t>((row * input_.width + column) * input_.channels);
  }
  weights += phase.shifts.size() * filter_bytes_ * input_.channels;
  phases_.push_back(std::move(phase));
  return weights;
}

void TiledProducts::take_weights(const Matrix& signs) {
  for (const Phase& phase : phases_) pack_weights(phase, signs);
}

// [16 channels][64 filters][tap]: a tile of 16 quads each, four filters interleaved.
void TiledProducts::pack_weights(const Phase& phase, const Matrix& signs) {
  const size_t taps = phase.shifts.size();
  size_t tap = 0;
  int8_t* to = weights_.data() + phase.weights;
  for (const size_t row : phase.geometry.rows) {
    for (const size_t column : phase.geometry.columns) {
      const size_t at = (row * kernel_.side + column) * input_.channels;
      for (size_t f = 0; f < signs.rows; f += 4) {
        const float* const rows[4] = {signs.row(f) + at, signs.row(f + 1) + at, signs.row(f + 2) + at,
                                      signs.row(f + 3) + at};
        const size_t tile = f / kTileBytes * taps + tap;
        kernels_.interleave(rows, input_.channels,
                            to + tile * kTileRows * kTileBytes + f % kTileBytes * kTileRows,
                            taps * filter_bytes_ * kTileRows);
      }
      ++tap;
    }
  }
}

void TiledProducts::backward(const Images& gradient, const Images& input, size_t images, float factor,
                             Matrix* of_weights, Images* of_input, bool adds) {
  const size_t chunk = chunk_quads_ * 4 * sheet_images_;
  for (size_t first = 0; first < images; first += chunk) {
    const Range range{first, std::min(chunk, images - first)};
    take_gradient(gradient, range, factor);
    take_input(input, range);
    add_weight_gradient(range, images, factor, of_weights);
    if (of_input == nullptr) continue;
    for (const Phase& phase : phases_) phase_gradient(phase, range, factor, adds, of_input);
  }
}

// Sheets beyond the last image have no gradient; neither have images beyond it on the last sheet.
const float* TiledProducts::gradient_sheet(const Images& gradient, const Range& range, size_t sheet) {
  const size_t first = sheet * sheet_images_;
  if (first >= range.count) return no_gradient_.data();
  const float* from = gradient.row(range.first + first, 0);
  if (first + sheet_images_ <= range.count) return from;
  last_gradient_.clear();
  std::copy_n(from, (range.count - first) * output_.image_floats(), last_gradient_.data());
  return last_gradient_.data();
}

// Without a gradient the signs do not matter.
const uint32_t* TiledProducts::sign_sheet(const Images& input, const Range& range, size_t sheet) {
  const size_t first = sheet * sheet_images_;
  if (first >= range.count) return last_signs_.words();
  const uint32_t* from = input.words() + (range.first + first) * input.image_words();
  if (first + sheet_images_ <= range.count) return from;
  std::copy_n(from, (range.count - first) * input.image_words(), last_signs_.words());
  return last_signs_.words();
}

void TiledProducts::take_gradient(const Images& gradient, const Range& range, float factor) {
  const size_t behind_border = (pitch_ + 1) * kTileBytes;
  for (size_t quad = 0; quad < quads_of(range.count); ++quad) {
    GradientSplit split{};
    for (size_t i = 0; i < 4; ++i) {
      const size_t sheet = 4 * quad + i;
      split.images[i] = gradient_sheet(gradient, range, sheet);
      split.high[i] = high_.data() + sheet * sheet_bytes_ + behind_border;
      split.low[i] = low_.data() + sheet * sheet_bytes_ + behind_border;
    }
    split.offsets = offsets_.data();
    split.positions = positions_;
    split.channels = output_.channels;
    split.factor = factor;
    split.block_step = block_bytes_;
    split.quads_high = quads_high_.data() + quad * row_bytes_ * output_.channels;
    split.quads_low = quads_low_.data() + quad * row_bytes_ * output_.channels;
    split.row_bytes = row_bytes_;
    kernels_.split(split);
  }
}

void TiledProducts::take_input(const Images& input, const Range& range) {
  int8_t* to = signs_.data();
  for (size_t quad = 0; quad < quads_of(range.count); ++quad) {
    const uint32_t* four[4];
    for (size_t i = 0; i < 4; ++i) four[i] = sign_sheet(input, range, 4 * quad + i);
    for (const std::vector<uint32_t>& offsets : planes_) {
      kernels_.gather(four, offsets.data(), offsets.size(), input_.channels, to, sign_block_bytes_);
      to += channels_ / kTileRows * sign_block_bytes_;
    }
  }
}

void TiledProducts::add_weight_gradient(const Range& range, size_t images, float factor, Matrix* gradient) {
  const size_t filter_sums = 2 * shifts_.size() * channels_;
  kernels_.sum({.high = quads_high_.data(),
                .low = quads_low_.data(),
                .row_bytes = row_bytes_,
                .filters = output_.channels,
                .signs = signs_.data(),
                .signs_step = planes_.size() * channels_ / kTileRows * sign_block_bytes_,
                .block_step = sign_block_bytes_,
                .channels = channels_,
                .shifts = shifts_.data(),
                .taps = shifts_.size(),
                .quads = quads_of(range.count),
                .positions = positions_,
                .sums = sums_.data(),
                .sums_step = sums_.size() > kTileRows * filter_sums ? kTileRows * filter_sums : 0,
                .adds = range.first > 0,
                .ends = range.first + range.count == images,
                .factor = 1 / factor,
                .c = gradient->row(0),
                .channels_wanted = input_.channels});
}

void TiledProducts::phase_gradient(const Phase& phase, const Range& range, float factor, bool adds,
                                   Images* gradient) {
  const ConvolutionPhase& geometry = phase.geometry;
  if (geometry.height == 0 || geometry.width == 0) return;
  if (adds && geometry.pixels.empty()) return;
  const size_t image_floats = gradient->shape().image_floats();
  const size_t together = std::max<size_t>(1, kChunkBytes / (2 * sheet_bytes_));
  const size_t sheets = (range.count + sheet_images_ - 1) / sheet_images_;
  for (size_t sheet = 0; sheet < sheets; sheet += together) {
    const size_t at = sheet * sheet_bytes_ + phase.first;
    const size_t first = sheet * sheet_images_;
    kernels_.multiply({.high = high_.data() + at,
                       .low = low_.data() + at,
                       .images = std::min(together, sheets - sheet),
                       .image_step = sheet_bytes_,
                       .blocks = filter_bytes_ / kTileBytes,
                       .block_step = block_bytes_,
                       .shifts = phase.shifts.data(),
                       .taps = phase.shifts.size(),
                       .weights = weights_.data() + phase.weights,
                       .channels = input_.channels,
                       .offsets = phase.offsets.data(),
                       .positions = phase.offsets.size(),
                       .factor = 1 / factor,
                       .c = gradient->row(range.first + first, 0),
                       .c_image_step = sheet_images_ * image_floats,
                       .c_floats = (range.count - first) * image_floats,
                       .streams = gradient->batch() * image_floats * sizeof(float) >= kStreamedBytes,
                       .adds = adds});
  }
}

}  // namespace bitfed
