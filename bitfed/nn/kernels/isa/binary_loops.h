// One-bit layers: exact products, signs and their latent weights; a part of loops.h.

// A tile of c in registers.
template <int kRows, int kVectors>
struct PairTile {
  Pairs sums[kRows][kVectors];

  void clear() {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sums[r][v] = no_sums();
    }
  }

  void take(const int32_t* c, size_t stride) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sums[r][v] = load_sums(c + r * stride + v * kLanes);
    }
  }

  void add(const int16_t* const (&a)[kRows], size_t at, const int16_t* b) {
    Pairs line[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) line[v] = load_pairs(b + v * 2 * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Pairs value = all_pairs(a[r] + at);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sums[r][v] = dot(sums[r][v], value, line[v]);
    }
  }

  void put(float* c, size_t stride, float factor, bool adds) const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        float* to = c + r * stride + v * kLanes;
        const Lanes value = floats_of(sums[r][v]) * all(factor);
        store(to, adds ? load(to) + value : value);
      }
    }
  }

  void put_whole(int32_t* c, size_t stride) const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) store_sums(c + r * stride + v * kLanes, sums[r][v]);
    }
  }

  void put_rounded(int16_t* c, size_t stride, float factor) const {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v)
        store_rounded(c + r * stride + v * kLanes, floats_of(sums[r][v]) * all(factor));
    }
  }
};

template <int kRows, int kVectors>
inline void pair_tile(const PairProduct& p, size_t row, size_t column) {
  PairTile<kRows, kVectors> tile;
  tile.clear();
  const int16_t* a[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) a[r] = p.a + p.offsets[row + r];
  for (size_t segment = 0; segment < p.segments; ++segment) {
    const int16_t* b = p.b + segment * p.b_segment_step + 2 * column;
    const size_t at = segment * p.a_segment_step;
    for (size_t k = 0; k < p.pairs; ++k, b += 2 * p.columns) tile.add(a, at + 2 * k, b);
  }
  const size_t at = row * p.c_stride + column;
  if (p.rounded_c != nullptr) return tile.put_rounded(p.rounded_c + at, p.c_stride, p.factor);
  tile.put(p.c + at, p.c_stride, p.factor, p.adds);
}

template <int kRows, int kVectors>
inline void pair_tile(const PairSum& p, size_t row, size_t column) {
  PairTile<kRows, kVectors> tile;
  const size_t at = row * p.c_stride + column;
  if (p.whole_c != nullptr && p.adds) {
    tile.take(p.whole_c + at, p.c_stride);
  } else {
    tile.clear();
  }
  const int16_t* a[kRows];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) a[r] = p.a + 2 * (row + r);
  const int16_t* b = p.b + 2 * column;
  for (size_t k = 0; k < p.pairs; ++k, b += 2 * p.columns) tile.add(a, k * p.a_stride, b);
  if (p.whole_c != nullptr) return tile.put_whole(p.whole_c + at, p.c_stride);
  tile.put(p.c + at, p.c_stride, p.factor, p.adds);
}

template <int kRows, int kVectors, typename Product>
inline void pair_strip(const Product& p, size_t column) {
  size_t row = 0;
  for (; row + kRows <= p.rows; row += kRows) pair_tile<kRows, kVectors>(p, row, column);
  if constexpr (kRows > 4) {
    for (; row + 4 <= p.rows; row += 4) pair_tile<4, kVectors>(p, row, column);
  }
  for (; row < p.rows; ++row) pair_tile<1, kVectors>(p, row, column);
}

template <typename Product>
inline void pair_strips(const Product& p) {
  size_t column = 0;
  if constexpr (kWideVectors > 2) {
    // By fours; what is left over becomes a three and a two rather than a four and a one.
    size_t vectors = p.columns / kLanes;
    for (; vectors == 4 || vectors > 5; vectors -= 4, column += 4 * kLanes)
      pair_strip<kGatheredWideRows, 4>(p, column);
    if (vectors == 3 || vectors == 5) {
      pair_strip<8, 3>(p, column);
      column += 3 * kLanes;
    }
  }
  for (; column + 2 * kLanes <= p.columns; column += 2 * kLanes) pair_strip<kPairRows, 2>(p, column);
  if (column < p.columns) pair_strip<kOtherSingleRows, 1>(p, column);
}

void multiply_pairs(const PairProduct& p) {
  pair_strips(p);
}

void sum_pairs(const PairSum& p) {
  pair_strips(p);
}

float largest_magnitude(const float* x, size_t count) {
  constexpr size_t kChains = 4;  // independent ones hide their latency
  Largest largest[kChains];
  size_t i = 0;
  for (; i + kChains * kLanes <= count; i += kChains * kLanes) {
#pragma GCC unroll 4
    for (size_t chain = 0; chain < kChains; ++chain) largest[chain].take(load(x + i + chain * kLanes));
  }
  for (; i < count; i += kLanes) largest[0].take(load(x + i));
  for (size_t chain = 1; chain < kChains; ++chain) largest[0].take(largest[chain]);
  return largest[0].found();
}

void quantise(const float* x, size_t count, float factor, int16_t* out) {
  for (size_t i = 0; i < count; i += kLanes) store_rounded(out + i, load(x + i) * all(factor));
}

void quantise_pairs(const float* even, const float* odd, size_t count, float factor, int16_t* out) {
  for (size_t i = 0; i < count; i += kLanes)
    store_rounded(out + 2 * i, load(even + i) * all(factor), load(odd + i) * all(factor));
}

typedef uint32_t Sixteen __attribute__((vector_size(64), aligned(4), may_alias));

void sign_pairs(const uint32_t* even, const uint32_t* odd, size_t pixels, size_t channels, int16_t* out) {
  const Sixteen bits = {1u << 0, 1u << 1, 1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
                        1u << 8, 1u << 9, 1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15};
  const size_t words = (channels + 31) / 32;
  for (size_t pixel = 0; pixel < pixels; ++pixel, even += words, odd += words) {
    for (size_t c = 0; c < channels; c += kLanes, out += 2 * kLanes) {
      const Sixteen no_even = (Sixteen)((bits & (even[c / 32] >> c % 32)) == 0);  // all ones for a sign of -1
      const Sixteen no_odd = (Sixteen)((bits & (odd[c / 32] >> c % 32)) == 0);
      *reinterpret_cast<Sixteen*>(out) = (no_even & 0xFFFE) | (no_odd & 0xFFFE0000) | 0x10001;
    }
  }
}

// In registers that every instruction set has.
typedef int16_t Eight __attribute__((vector_size(16), may_alias));

inline Eight signs_of(Eight x) {
  return (x >> 15) | 1;
}

void pair_shorts(const int16_t* even, const int16_t* odd, size_t count, int16_t* out) {
  for (size_t i = 0; i < count; i += kLanes) store_pairs(out + 2 * i, paired(even + i, odd + i));
}

void pair_signs(const int16_t* even, const int16_t* odd, size_t count, int16_t* out) {
  for (size_t i = 0; i < count; i += kLanes) store_pairs(out + 2 * i, signs_of(paired(even + i, odd + i)));
}

void transpose_signs(const int16_t* from, size_t rows, size_t columns, int16_t* to, size_t to_stride) {
  size_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    size_t column = transpose_four(from + row * columns, columns, to + 2 * row, 2 * to_stride);
    for (; column < columns; column += 8) {
      const auto read = [&](size_t r) {
        return signs_of(*reinterpret_cast<const Eight*>(from + (row + r) * columns + column));
      };
      const Eight a = read(0);
      const Eight b = read(1);
      const Eight c = read(2);
      const Eight d = read(3);
      const Eight ab_low = __builtin_shufflevector(a, b, 0, 1, 8, 9, 2, 3, 10, 11);
      const Eight ab_high = __builtin_shufflevector(a, b, 4, 5, 12, 13, 6, 7, 14, 15);
      const Eight cd_low = __builtin_shufflevector(c, d, 0, 1, 8, 9, 2, 3, 10, 11);
      const Eight cd_high = __builtin_shufflevector(c, d, 4, 5, 12, 13, 6, 7, 14, 15);
      int16_t* out = to + (column / 2 * to_stride + row) * 2;
      const auto write = [&](size_t pair, Eight values) {
        *reinterpret_cast<Eight*>(out + pair * 2 * to_stride) = values;
      };
      write(0, __builtin_shufflevector(ab_low, cd_low, 0, 1, 2, 3, 8, 9, 10, 11));
      write(1, __builtin_shufflevector(ab_low, cd_low, 4, 5, 6, 7, 12, 13, 14, 15));
      write(2, __builtin_shufflevector(ab_high, cd_high, 0, 1, 2, 3, 8, 9, 10, 11));
      write(3, __builtin_shufflevector(ab_high, cd_high, 4, 5, 6, 7, 12, 13, 14, 15));
    }
  }
  for (; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column)
      to[(column / 2 * to_stride + row) * 2 + column % 2] = from[row * columns + column] < 0 ? -1 : 1;
  }
}

void signs(const float* x, size_t count, float threshold, float* out) {
  for (size_t i = 0; i < count; i += kLanes)
    store(out + i, where_at_least(load(x + i), all(threshold), all(1.0f), all(-1.0f)));
}

void add(const float* x, const float* y, size_t count, float* sum) {
  for (size_t i = 0; i < count; i += kLanes) store(sum + i, load(x + i) + load(y + i));
}

void combine(const float* x, float a, const float* y, float b, size_t count, float* out) {
  for (size_t i = 0; i < count; i += kLanes) store(out + i, fma(load(x + i), all(a), load(y + i) * all(b)));
}

float mean(const float* x, size_t count, size_t used) {
  Doubles sums = no_doubles();
  for (size_t i = 0; i < count; i += kLanes) sums = add(sums, load(x + i));
  return static_cast<float>(sum_of(sums) / static_cast<double>(used));
}

inline Lanes mask_at(const float* mask, size_t i) {
  return mask == nullptr ? all(1.0f) : load(mask + i);
}

// Sums over a filter or an image, see kSummedTogether: add(i, sums) adds the values from i on. Four registers
// a sum hide the latency of additions.
template <int kSums>
struct Sums {
  float of[kSums] = {};
};

template <int kSums, typename Add>
inline Sums<kSums> add_up(size_t count, const Add& add) {
  constexpr size_t kChains = kSumChains / kLanes;
  Sums<kSums> sums;
  for (size_t first = 0; first < count; first += kSummedTogether) {
    const size_t last = first + kSummedTogether < count ? first + kSummedTogether : count;
    Lanes chains[kChains][kSums];
#pragma GCC unroll 4
    for (size_t c = 0; c < kChains; ++c) {
#pragma GCC unroll 2
      for (int s = 0; s < kSums; ++s) chains[c][s] = all(0.0f);
    }
    size_t i = first;
    for (; i + kSumChains <= last; i += kSumChains) {
#pragma GCC unroll 4
      for (size_t c = 0; c < kChains; ++c) add(i + c * kLanes, chains[c]);
    }
#pragma GCC unroll 4
    for (size_t c = 0; c < kChains; ++c) {
      if (i + c * kLanes < last) add(i + c * kLanes, chains[c]);
    }
#pragma GCC unroll 2
    for (int s = 0; s < kSums; ++s)
      sums.of[s] += sum_of((chains[0][s] + chains[2][s]) + (chains[1][s] + chains[3][s]));
  }
  return sums;
}

float standard_deviation(const float* x, size_t count, const float* mask, size_t used, float about) {
  const Sums squares = add_up<1>(count, [&](size_t i, Lanes* sums) {
    const Lanes difference = (load(x + i) - all(about)) * mask_at(mask, i);
    sums[0] = fma(difference, difference, sums[0]);
  });
  return __builtin_sqrtf(squares.of[0] / static_cast<float>(used));
}

void standardise(const float* x, size_t count, const float* mask, float about, float factor, float* out) {
  for (size_t i = 0; i < count; i += kLanes)
    store(out + i, (load(x + i) - all(about)) * all(factor) * mask_at(mask, i));
}

template <bool kStreams>
inline void sign_backward_as(const SignBackward& s) {
  const Slope slope(s.surrogate);
  const Lanes about = all(s.mean);
  const Lanes inverse = all(s.inverse_std);
  const auto normal_at = [&](size_t i) { return (load(s.x + i) - about) * inverse; };
  const auto passed = [&](size_t i, Lanes normal) { return load(s.gradient + i) * slope.at(normal); };
  const Sums both = add_up<2>(s.count, [&](size_t i, Lanes* sums) {
    const Lanes normal = normal_at(i);
    const Lanes gradient = passed(i, normal);
    sums[0] = sums[0] + gradient;
    sums[1] = fma(gradient, normal, sums[1]);
  });
  const float count = static_cast<float>(s.count);
  const Lanes sum = all(both.of[0] / count);
  const Lanes along = all(-both.of[1] / count);
  for (size_t i = 0; i < s.count; i += kLanes) {
    const Lanes normal = normal_at(i);
    Lanes gradient = fma(along, normal, passed(i, normal) - sum) * inverse;
    if (s.other != nullptr) gradient = load(s.other + i) + gradient;
    put<kStreams>(s.x_gradient + i, gradient);
  }
}

void sign_backward(const SignBackward& s) {
  if (s.streams) return sign_backward_as<true>(s);
  sign_backward_as<false>(s);
}

inline Blend blend_at(const FilterBlend& f, size_t i) {
  return {load(f.weights + i), load(f.rotated + i), load(f.anchor + i), f.alpha, f.beta};
}

void blend_filter(const FilterBlend& f, float* blended) {
  for (size_t i = 0; i < f.count; i += kLanes) store(blended + i, blend_at(f, i).blended);
}

// The blend is recomputed: that takes less time than to read it from memory.
void blend_filter_backward(FilterBlendBackward* b) {
  const FilterBlend& f = b->forward;
  const Slope slope(b->surrogate);
  const Lanes alpha = all(f.alpha);
  const Lanes rest = all(1 - f.alpha - f.beta);
  const Sums both = add_up<2>(f.count, [&](size_t i, Lanes* sums) {
    const Blend blend = blend_at(f, i);
    const Lanes gradient = load(b->gradient + i) * slope.at(blend.blended);
    sums[0] = fma(gradient, blend.to_rotated, sums[0]);
    sums[1] = fma(gradient, blend.to_anchor, sums[1]);
    store(b->kept + i, rest * gradient);
    store(b->rotated + i, alpha * gradient);
  });
  b->of_alpha = both.of[0];
  b->of_beta = both.of[1];
}

void fuse_filter_backward(FilterFuseBackward* f) {
  const Sums both = add_up<2>(f->count, [&](size_t i, Lanes* sums) {
    const Lanes gradient = load(f->gradient + i) + load(f->rotated_gradient + i);
    sums[0] = sums[0] + gradient;
    sums[1] = fma(gradient, load(f->weights + i), sums[1]);
  });
  const float used = static_cast<float>(f->used);
  const Lanes sum = all(both.of[0] / used);
  const Lanes along = all(-both.of[1] / used);
  const Lanes inverse = all(f->inverse_std);
  const Lanes lambda = all(f->lambda);
  const Sums pull = add_up<1>(f->count, [&](size_t i, Lanes* sums) {
    const Lanes gradient = load(f->gradient + i) + load(f->rotated_gradient + i) - sum;
    const Lanes fused = fma(along, load(f->weights + i), gradient) * inverse * load(f->mask + i);
    store(f->local_gradient + i, lambda * fused);
    sums[0] = fma(fused, load(f->local + i) - load(f->anchor + i), sums[0]);
  });
  f->of_lambda = pull.of[0];
}
