#include "bitfed/tsetlin/machine/patches.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "bitfed/bits/kernels.h"

namespace bitfed {
namespace {

constexpr uint64_t low_bits(size_t count) {
  return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

// Up to 64 bits from position `from`; reads the next word only if the bits extend into it.
uint64_t read_bits(const uint64_t* words, size_t from, size_t count) {
  const size_t shift = from % 64;
  uint64_t bits = words[from / 64] >> shift;
  if (shift + count > 64) bits |= words[from / 64 + 1] << (64 - shift);
  return bits & low_bits(count);
}

// Appends bits, a word at a time.
class BitAppender {
 public:
  explicit BitAppender(uint64_t* words) : next_(words) {}

  // Appends after the first `position` bits of `words`; the other bits of that word must be zero.
  BitAppender(uint64_t* words, size_t position)
      : next_(words + position / 64), used_(position % 64), word_(used_ > 0 ? *next_ : 0) {}

  // `bits` has no more than `count` bits.
  void append(uint64_t bits, size_t count) {
    word_ |= bits << used_;
    used_ += count;
    if (used_ >= 64) {
      *next_++ = word_;
      used_ -= 64;
      word_ = used_ > 0 ? bits >> (count - used_) : 0;
    }
  }

  // Writes the last word, padded with zeros.
  void finish() {
    if (used_ > 0) *next_ = word_;
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
  uint64_t* next_;
  size_t used_ = 0;  // bits of the current word
  uint64_t word_ = 0;
};

// The lowest or the highest set bit in [begin, end), or `end` if there is none.
size_t first_set(const uint64_t* words, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i += 64) {
    const uint64_t bits = read_bits(words, i, std::min<size_t>(64, end - i));
    if (bits != 0) return i + static_cast<size_t>(std::countr_zero(bits));
  }
  return end;
}

size_t last_set(const uint64_t* words, size_t begin, size_t end) {
  size_t last = end;
  for (size_t i = begin; i < end; i += 64) {
    const uint64_t bits = read_bits(words, i, std::min<size_t>(64, end - i));
    if (bits != 0) last = i + 63 - static_cast<size_t>(std::countl_zero(bits));
  }
  return last;
}

}  // namespace

PatchLiterals::PatchLiterals(const PatchShape& shape)
    : shape_(shape), blocks_(shape.is_flat() ? 0 : blocks_for(shape.patches())) {
  if (shape.is_flat()) return;
  valid_.resize(blocks_ * kBlockWords);
  for (size_t p = 0; p < shape.patches(); ++p) set_bit(valid_.data(), p);
  bitmaps_.resize((shape.literals() + 1) * blocks_ * kBlockWords);
  std::copy(valid_.begin(), valid_.end(), bitmap(filler()));
  if (shape.planes > 1) planes_.resize(shape.planes * shape.height * words_for(shape.width));
  // Windows of whole blocks extend beyond the last bit.
  strip_words_ = words_for(shape.height * shape.positions_x()) + 2 * kBlockWords;
  strips_.resize(shape.patch_width * strip_words_);
  fill_positions();
}

// The bitmaps of position literals are the same for every image and filled once. Exactly one of a feature and
// its negation holds at each patch.
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

// Feature (dy, dx, plane) holds at patch (y, x) if pixel (y + dy, x + dx) is set: bit (y + dy) * positions_x
// + x of strip dx, that is bit number y * positions_x + x of the strip from dy * positions_x on.
void PatchLiterals::fill_content() {
  const Kernels& kernel = kernels();
  const size_t columns = shape_.positions_x();
  const size_t row_words = shape_.planes == 1 ? images_->bits.stride() : words_for(shape_.width);
  const uint64_t* rows = shape_.planes == 1 ? images_->row(sample_, 0) : load_planes();
  for (size_t plane = 0; plane < shape_.planes; ++plane, rows += shape_.height * row_words) {
    fill_strips(rows, row_words);
    for (size_t dx = 0; dx < shape_.patch_width; ++dx) {
      for (size_t dy = 0; dy < shape_.patch_height; ++dy) {
        const size_t feature =
            shape_.position_bits() + (dy * shape_.patch_width + dx) * shape_.planes + plane;
        // The window that begins at row dy is the bitmap of the feature.
        kernel.split_window(strips_.data() + dx * strip_words_, dy * columns, valid_.data(), blocks_,
                            bitmap(feature), bitmap(feature + shape_.features()));
      }
    }
  }
}

// Strip dx: the rows of the image in sequence, of each the columns that column dx of a patch can cover.
void PatchLiterals::fill_strips(const uint64_t* rows, size_t row_words) {
  const size_t columns = shape_.positions_x();
  if (row_words > 1) {
    for (size_t dx = 0; dx < shape_.patch_width; ++dx) {
      BitAppender strip(strips_.data() + dx * strip_words_);
      for (size_t y = 0; y < shape_.height; ++y) strip.append_range(rows + y * row_words, dx, columns);
      strip.finish();
    }
    return;
  }
  // Each row is appended to all strips, without a branch for each strip.
  const uint64_t window = low_bits(columns);
  for (size_t dx = 0; dx < shape_.patch_width; ++dx) strips_[dx * strip_words_] = 0;
  for (size_t y = 0; y < shape_.height; ++y) {
    const size_t used = y * columns % 64;
    uint64_t* words = strips_.data() + y * columns / 64;
    for (size_t dx = 0; dx < shape_.patch_width; ++dx) {
      words[dx * strip_words_] |= (rows[y] >> dx & window) << used;
    }
    if (used + columns < 64) continue;
    for (size_t dx = 0; dx < shape_.patch_width; ++dx) {
      words[dx * strip_words_ + 1] = used > 0 ? (rows[y] >> dx & window) >> (64 - used) : 0;
    }
  }
}

// The planes of a pixel are adjacent in the image; this separates them, 64 pixels at a time.
const uint64_t* PatchLiterals::load_planes() {
  const size_t row_words = words_for(shape_.width);
  uint64_t tile[64];
  for (size_t y = 0; y < shape_.height; ++y) {
    const uint64_t* row = images_->row(sample_, y);
    for (size_t x = 0; x < shape_.width; x += 64) {
      const size_t pixels = std::min<size_t>(64, shape_.width - x);
      for (size_t plane = 0; plane < shape_.planes; plane += 64) {
        const size_t bits = std::min<size_t>(64, shape_.planes - plane);
        for (size_t i = 0; i < pixels; ++i) {
          tile[i] = read_bits(row, (x + i) * shape_.planes + plane, bits);
        }
        std::fill(tile + pixels, tile + 64, uint64_t{0});
        transpose_64(tile, pixels, bits);
        for (size_t i = 0; i < bits; ++i) {
          planes_[((plane + i) * shape_.height + y) * row_words + x / 64] = tile[i];
        }
      }
    }
  }
  return planes_.data();
}

// Of each thermometer only the strictest literal matters: the last of y > t, the first of its negations.
void PatchLiterals::position_mask(const uint64_t* actions, uint64_t* mask) const {
  const size_t words = blocks_ * kBlockWords;
  const size_t y_end = shape_.positions_y() - 1;
  const size_t x_end = shape_.position_bits();
  const size_t negated = shape_.features();
  const size_t ends[] = {y_end, x_end, negated + y_end, negated + x_end};
  const size_t strictest[] = {last_set(actions, 0, y_end), last_set(actions, y_end, x_end),
                              first_set(actions, negated, negated + y_end),
                              first_set(actions, negated + y_end, negated + x_end)};
  const uint64_t* holds[4];
  for (size_t i = 0; i < 4; ++i) {
    holds[i] = strictest[i] == ends[i] ? valid_.data() : bitmaps_.data() + strictest[i] * words;
  }
  for (size_t w = 0; w < words; ++w) mask[w] = holds[0][w] & holds[1][w] & holds[2][w] & holds[3][w];
}

void PatchLiterals::patch(size_t index, uint64_t* literals) const {
  const size_t y = index / shape_.positions_x();
  const size_t x = index % shape_.positions_x();
  BitAppender out(literals);
  if (!shape_.is_flat()) {
    out.append_thermometer(y, shape_.positions_y() - 1);
    out.append_thermometer(x, shape_.positions_x() - 1);
  }
  const size_t row_bits = shape_.patch_width * shape_.planes;
  for (size_t dy = 0; dy < shape_.patch_height; ++dy) {
    out.append_range(images_->row(sample_, y + dy), x * shape_.planes, row_bits);
  }
  out.finish();
  // Then the negations: the features, inverted. The copy is ahead of its source.
  BitAppender negations(literals, shape_.features());
  for (size_t from = 0; from < shape_.features(); from += 64) {
    const size_t count = std::min<size_t>(shape_.features() - from, 64);
    negations.append(~read_bits(literals, from, count) & low_bits(count), count);
  }
  negations.finish();
}

}  // namespace bitfed
