// Plain loops: the reference for the vector units, and the fallback.

#include "bitfed/nn/kernels/isa/binary_units.h"

namespace bitfed::isa {
namespace {

int32_t ones(uint32_t x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  return static_cast<int32_t>(x * 0x01010101u >> 24);
}

int32_t sum_about(const SignPatches& p, size_t pixel, size_t filter) {
  int32_t differing = 0;
  const uint32_t* patch = p.image + p.offsets[pixel];
  const uint32_t* weights = p.filters + filter;
  for (size_t segment = 0; segment < p.segments; ++segment, patch += p.segment_step) {
    for (size_t k = 0; k < p.segment_words; ++k, weights += p.filter_count)
      differing += ones(patch[k] ^ *weights);
  }
  return p.bases[p.cases[pixel] * p.filter_count + filter] - 2 * differing;
}

int32_t largest_about(const SignPatches& p, size_t quad, size_t filter) {
  int32_t largest = INT32_MIN;
  for (size_t pixel = 4 * quad; pixel < 4 * quad + 4; ++pixel) {
    const int32_t sum = sum_about(p, pixel, filter);
    if (sum > largest) largest = sum;
  }
  return largest;
}

float clipped(float x) {
  x = x < 1 ? x : 1;
  return x > -1 ? x : -1;
}

void sign_pools(const SignPatches& p, const SignPools& pools) {
  for (size_t quad = 0; quad < p.quads; ++quad) {
    for (size_t filter = 0; filter < p.filter_count; ++filter) {
      const float product = static_cast<float>(largest_about(p, quad, filter)) * pools.factor[filter];
      pools.out[quad * p.filter_count + filter] = clipped(product + pools.offset[filter]);
    }
  }
}

void sign_norms(const SignPatches& p, const SignNorms& norms) {
  for (size_t pixel = 0; pixel < 4 * p.quads; ++pixel) {
    for (size_t filter = 0; filter < p.filter_count; ++filter) {
      const size_t to = pixel * p.filter_count + filter;
      const float product = static_cast<float>(sum_about(p, pixel, filter)) * norms.factor[filter];
      float x = product + norms.offset[filter];
      if (norms.shortcut != nullptr) x += norms.shortcut[to];
      norms.out[to] = norms.clips ? clipped(x) : x;
    }
  }
}

void sign_thresholds(const SignPatches& p, const SignThresholds& t) {
  for (size_t i = 0; i < (t.pools ? p.quads : 4 * p.quads); ++i) {
    for (size_t filter = 0; filter < p.filter_count; ++filter) {
      const int32_t sum = t.pools ? largest_about(p, i, filter) : sum_about(p, i, filter);
      t.words[t.offsets[i] + filter / 32] |= uint32_t{sum >= t.min_sums[filter]} << (filter % 32);
    }
  }
}

void sign_sums(const SignPatches& p, float* out) {
  for (size_t pixel = 0; pixel < 4 * p.quads; ++pixel) {
    for (size_t filter = 0; filter < p.filter_count; ++filter)
      *out++ = static_cast<float>(sum_about(p, pixel, filter));
  }
}

void signs_about(const float* values, size_t pixels, size_t channels, float mean, uint32_t* words) {
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    for (size_t first = 0; first < channels; first += 32) {
      uint32_t word = 0;
      for (size_t i = 0; i < 32 && first + i < channels; ++i) word |= uint32_t{*values++ >= mean} << i;
      *words++ = word;
    }
  }
}

}  // namespace

const BinaryKernels& scalar_binary_kernels() {
  static constexpr BinaryKernels kTable = {"scalar",        sign_pools, sign_norms,
                                           sign_thresholds, sign_sums,  signs_about};
  return kTable;
}

}  // namespace bitfed::isa
