// Plain loops: the reference for the vector units, and the fallback. A fused multiply-add is a call of the C
// library here, slow but exact.

#include "bitfed/nn/kernels/isa/units.h"

// The reference must not depend on a vectoriser: GCC 12's for ARM gets the backward pass of batch norm wrong.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif

namespace bitfed::isa {
namespace {

struct Lanes {
  float v[kLanes];
};

template <typename Operation>
inline Lanes each(Operation operation) {
  Lanes result;
  for (size_t i = 0; i < kLanes; ++i) result.v[i] = operation(i);
  return result;
}

inline Lanes load(const float* p) {
  return each([&](size_t i) { return p[i]; });
}
inline void store(float* p, const Lanes& x) {
  for (size_t i = 0; i < kLanes; ++i) p[i] = x.v[i];
}
inline void stream(float* p, const Lanes& x) {
  store(p, x);
}
inline Lanes all(float value) {
  return each([&](size_t) { return value; });
}
inline Lanes operator+(const Lanes& a, const Lanes& b) {
  return each([&](size_t i) { return a.v[i] + b.v[i]; });
}
inline Lanes operator-(const Lanes& a, const Lanes& b) {
  return each([&](size_t i) { return a.v[i] - b.v[i]; });
}
inline Lanes operator*(const Lanes& a, const Lanes& b) {
  return each([&](size_t i) { return a.v[i] * b.v[i]; });
}
inline Lanes operator/(const Lanes& a, const Lanes& b) {
  return each([&](size_t i) { return a.v[i] / b.v[i]; });
}
inline Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  return each([&](size_t i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
inline Lanes root(const Lanes& x) {
  return each([&](size_t i) { return __builtin_sqrtf(x.v[i]); });
}
inline Lanes larger(const Lanes& a, const Lanes& b) {
  return each([&](size_t i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline Lanes smaller(const Lanes& a, const Lanes& b) {
  return each([&](size_t i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline Lanes where_at_least(const Lanes& a, const Lanes& b, const Lanes& x, const Lanes& y) {
  return each([&](size_t i) { return a.v[i] >= b.v[i] ? x.v[i] : y.v[i]; });
}
inline uint32_t bits_of(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof(bits));
  return bits;
}
inline Lanes add_exponent(const Lanes& x, const Lanes& shifted) {
  return each([&](size_t i) {
    const uint32_t bits = bits_of(x.v[i]) + (bits_of(shifted.v[i]) << 23);
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
  });
}
inline float sum_of(const Lanes& x) {
  Lanes sum = x;
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) sum.v[i] = sum.v[i] + sum.v[i + half];
  }
  return sum.v[0];
}
inline uint32_t nonzeros_of(const Lanes& x) {
  uint32_t mask = 0;
  for (size_t i = 0; i < kLanes; ++i) mask |= (x.v[i] != 0 ? 1u : 0u) << i;
  return mask;
}
inline size_t list_nonzeros_of(const Lanes& x, const uint32_t* offsets, float* values, uint32_t* found) {
  size_t listed = 0;
  for (size_t i = 0; i < kLanes; ++i) {
    if (x.v[i] == 0) continue;
    values[listed] = x.v[i];
    found[listed++] = offsets[i];
  }
  return listed;
}
inline Lanes where_below(const uint32_t* draws, uint32_t bound, const Lanes& x, const Lanes& y) {
  return each([&](size_t i) { return draws[i] < bound ? x.v[i] : y.v[i]; });
}
inline float largest_of(const Lanes& x) {
  float largest = x.v[0];
  for (size_t i = 1; i < kLanes; ++i) largest = x.v[i] > largest ? x.v[i] : largest;
  return largest;
}

typedef uint64_t Words __attribute__((vector_size(16)));
constexpr size_t kWords = 2;

inline Words low_products(Words x, uint32_t factor) {
  return (x & 0xFFFFFFFF) * uint64_t{factor};
}
inline void store_words(uint32_t* p, Words x, Words y) {
  for (size_t i = 0; i < kWords; ++i, p += 4) {
    const uint64_t words[] = {x[i], y[i]};
    __builtin_memcpy(p, words, sizeof(words));
  }
}

struct Doubles {
  double v[kLanes];
};

inline Doubles no_doubles() {
  return {};
}
inline Doubles add(Doubles sums, const Lanes& x) {
  for (size_t i = 0; i < kLanes; ++i) sums.v[i] += static_cast<double>(x.v[i]);
  return sums;
}
inline double sum_of(Doubles sums) {
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) sums.v[i] += sums.v[i + half];
  }
  return sums.v[0];
}

struct Pairs {
  int32_t sums[kLanes];
  int16_t pairs[2 * kLanes];
};

inline Pairs no_sums() {
  return {};
}
inline Pairs load_sums(const int32_t* p) {
  Pairs result = {};
  for (size_t i = 0; i < kLanes; ++i) result.sums[i] = p[i];
  return result;
}
inline void store_sums(int32_t* p, const Pairs& sums) {
  for (size_t i = 0; i < kLanes; ++i) p[i] = sums.sums[i];
}
inline Pairs load_pairs(const int16_t* p) {
  Pairs result = {};
  for (size_t i = 0; i < 2 * kLanes; ++i) result.pairs[i] = p[i];
  return result;
}
inline Pairs all_pairs(const int16_t* p) {
  Pairs result = {};
  for (size_t i = 0; i < 2 * kLanes; ++i) result.pairs[i] = p[i % 2];
  return result;
}
inline Pairs paired(const int16_t* even, const int16_t* odd) {
  Pairs result = {};
  for (size_t i = 0; i < kLanes; ++i) {
    result.pairs[2 * i] = even[i];
    result.pairs[2 * i + 1] = odd[i];
  }
  return result;
}
inline void store_pairs(int16_t* p, const Pairs& x) {
  for (size_t i = 0; i < 2 * kLanes; ++i) p[i] = x.pairs[i];
}
inline Pairs signs_of(Pairs x) {
  for (int16_t& value : x.pairs) value = value < 0 ? -1 : 1;
  return x;
}
inline size_t transpose_four(const int16_t* /*from*/, size_t /*columns*/, int16_t* /*to*/,
                             size_t /*to_step*/) {
  return 0;
}
inline Pairs dot(Pairs sums, const Pairs& a, const Pairs& b) {
  for (size_t i = 0; i < kLanes; ++i)
    sums.sums[i] += a.pairs[2 * i] * b.pairs[2 * i] + a.pairs[2 * i + 1] * b.pairs[2 * i + 1];
  return sums;
}
inline Lanes floats_of(const Pairs& x) {
  return each([&](size_t i) { return static_cast<float>(x.sums[i]); });
}
inline int16_t rounded(float x) {
  return static_cast<int16_t>(__builtin_lrintf(x));
}
inline void store_rounded(int16_t* p, const Lanes& x) {
  for (size_t i = 0; i < kLanes; ++i) p[i] = rounded(x.v[i]);
}
inline void store_rounded(int16_t* p, const Lanes& even, const Lanes& odd) {
  for (size_t i = 0; i < kLanes; ++i) {
    p[2 * i] = rounded(even.v[i]);
    p[2 * i + 1] = rounded(odd.v[i]);
  }
}

constexpr int kWideRows = 1;
constexpr int kGatheredWideRows = 1;
constexpr int kWideVectors = 0;
constexpr int kPairRows = 2;
constexpr int kSingleRows = 2;
constexpr int kSparseVectors = 1;
constexpr int kColumnBlocks = 1;

#include "bitfed/nn/kernels/isa/loops.h"

}  // namespace

const NeuralKernels& scalar_neural_kernels() {
  static constexpr NeuralKernels kTable = table("scalar");
  return kTable;
}

}  // namespace bitfed::isa
