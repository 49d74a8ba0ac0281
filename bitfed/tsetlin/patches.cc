#include "bitfed/tsetlin/patches.h"

#include <algorithm>
#include <cassert>

namespace bitfed {
namespace {

constexpr uint64_t low_bits(size_t count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

// Up to 64 bits from position `from`; reads the word after only where the bits reach into it.
uint64_t read_bits(const uint64_t* words, size_t from, size_t count) {
  const size_t shift = from % 64;
  uint64_t bits = words[from / 64] >> shift;
  if (shift + count > 64) bits |= words[from / 64 + 1] << (64 - shift);
  return bits & low_bits(count);
}

// Writes bits one after the other into zeroed words.
class BitAppender {
 public:
  explicit BitAppender(uint64_t* words) : words_(words) {}

  void append(uint64_t bits, size_t count) {
    const size_t shift = position_ % 64;
    words_[position_ / 64] |= bits << shift;
    if (shift + count > 64) words_[position_ / 64 + 1] |= bits >> (64 - shift);
    position_ += count;
  }

  void append_range(const uint64_t* source, size_t from, size_t count) {
    for (; count > 64; from += 64, count -= 64) append(read_bits(source, from, 64), 64);
    append(read_bits(source, from, count), count);
  }

  // `ones` ones, then zeros up to `count` bits.
  void append_thermometer(size_t ones, size_t count) {
    for (; count > 64; count -= 64, ones -= std::min<size_t>(ones, 64)) append(low_bits(ones), 64);
    append(low_bits(ones), count);
  }

 private:
  uint64_t* words_;
  size_t position_ = 0;
};

// Bits first, first + step, first + 2 * step … of a row: one plane of interleaved planes.
void gather_plane(const uint64_t* row, size_t first, size_t step, size_t count, uint64_t* out) {
  std::fill_n(out, words_for(count), uint64_t{0});
  for (size_t i = 0, from = first; i < count; ++i, from += step) {
    out[i / 64] |= (row[from / 64] >> (from % 64) & 1) << (i % 64);
  }
}

}  // namespace

PatchLiterals::PatchLiterals(const PatchShape& shape)
    : shape_(shape), blocks_(shape.is_flat() ? 0 : blocks_for(shape.patches())) {
  if (shape.is_flat()) return;
  valid_.resize(blocks_ * kBlockWords);
  for (size_t p = 0; p < shape.patches(); ++p) set_bit(valid_.data(), p);
  bitmaps_.resize(shape.literals() * blocks_ * kBlockWords);
  plane_row_.resize(words_for(shape.width));
  // One word more than the bits need: shifted reads look one word ahead.
  strip_.resize(words_for(shape.height * shape.positions_x()) + 1);
  fill_positions();
}

void PatchLiterals::fill_positions() {
  const size_t rows = shape_.positions_y();
  const size_t columns = shape_.positions_x();
  for (size_t p = 0; p < shape_.patches(); ++p) {
    const size_t y = p / columns;
    const size_t x = p % columns;
    for (size_t t = 0; t + 1 < rows; ++t) set_bit(bitmap(t + (y > t ? 0 : shape_.features())), p);
    for (size_t t = 0; t + 1 < columns; ++t) {
      set_bit(bitmap(rows - 1 + t + (x > t ? 0 : shape_.features())), p);
    }
  }
}

void PatchLiterals::load(const BitImages& images, size_t sample) {
  assert(images.height == shape_.height && images.width == shape_.width && images.planes == shape_.planes);
  images_ = &images;
  sample_ = sample;
  if (!shape_.is_flat()) fill_content();
}

void PatchLiterals::fill_content() {
  const size_t columns = shape_.positions_x();
  for (size_t plane = 0; plane < shape_.planes; ++plane) {
    for (size_t dx = 0; dx < shape_.patch_width; ++dx) {
      std::fill(strip_.begin(), strip_.end(), uint64_t{0});
      BitAppender strip(strip_.data());
      for (size_t y = 0; y < shape_.height; ++y) {
        const uint64_t* row = images_->row(sample_, y);
        if (shape_.planes == 1) {
          strip.append_range(row, dx, columns);
        } else {
          gather_plane(row, dx * shape_.planes + plane, shape_.planes, columns, plane_row_.data());
          strip.append_range(plane_row_.data(), 0, columns);
        }
      }
      for (size_t dy = 0; dy < shape_.patch_height; ++dy) {
        const size_t content = (dy * shape_.patch_width + dx) * shape_.planes + plane;
        write_bitmap_pair(shape_.position_bits() + content, strip_.data(), dy * columns);
      }
    }
  }
}

// The window of the strip that begins at bit `from` is where the feature holds; its complement, where
// the negation does.
void PatchLiterals::write_bitmap_pair(size_t feature, const uint64_t* strip, size_t from) {
  uint64_t* holds = bitmap(feature);
  uint64_t* fails = bitmap(feature + shape_.features());
  const uint64_t* source = strip + from / 64;
  const size_t shift = from % 64;
  const size_t words = words_for(shape_.patches());
  for (size_t w = 0; w < words; ++w) {
    // Shifting twice makes a shift by 64 (where `shift` is 0) a shift to nothing.
    const uint64_t bits = source[w] >> shift | source[w + 1] << 1 << (63 - shift);
    holds[w] = bits & valid_[w];
    fails[w] = ~bits & valid_[w];
  }
}

void PatchLiterals::patch(size_t index, uint64_t* literals) const {
  const size_t y = index / shape_.positions_x();
  const size_t x = index % shape_.positions_x();
  std::fill_n(literals, words_for(shape_.literals()), uint64_t{0});
  BitAppender out(literals);
  if (!shape_.is_flat()) {
    out.append_thermometer(y, shape_.positions_y() - 1);
    out.append_thermometer(x, shape_.positions_x() - 1);
  }
  const size_t row_bits = shape_.patch_width * shape_.planes;
  for (size_t dy = 0; dy < shape_.patch_height; ++dy) {
    out.append_range(images_->row(sample_, y + dy), x * shape_.planes, row_bits);
  }
  // The negations follow: the features themselves, inverted. They are read before they are overwritten,
  // since the copy always runs ahead of the source.
  size_t left = shape_.features();
  for (size_t from = 0; left > 0; from += 64) {
    const size_t count = std::min<size_t>(left, 64);
    out.append(~read_bits(literals, from, count) & low_bits(count), count);
    left -= count;
  }
}

}  // namespace bitfed
