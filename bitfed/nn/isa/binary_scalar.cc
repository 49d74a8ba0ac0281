// Plain loops: what the vector units are held to, and the fallback.

#include "bitfed/nn/isa/binary_units.h"

namespace bitfed::isa {
namespace {

int32_t ones(uint32_t x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  return static_cast<int32_t>(x * 0x01010101u >> 24);
}

int32_t differing(const SignQuads& q, const uint32_t* patch, size_t filter) {
  int32_t count = 0;
  const uint32_t* weights = q.filters + filter;
  for (size_t segment = 0; segment < q.segments; ++segment, patch += q.segment_step) {
    for (size_t k = 0; k < q.segment_words; ++k, weights += q.filter_count)
      count += ones(patch[k] ^ *weights);
  }
  return count;
}

void sign_quads(const SignQuads& q) {
  for (size_t quad = 0; quad < q.quads; ++quad) {
    for (size_t filter = 0; filter < q.filter_count; ++filter) {
      int32_t largest = INT32_MIN;
      for (size_t corner = 4 * quad; corner < 4 * quad + 4; ++corner) {
        const int32_t base = q.bases[q.cases[corner] * q.filter_count + filter];
        const int32_t sum = base - 2 * differing(q, q.image + q.places[corner], filter);
        if (sum > largest) largest = sum;
      }
      const float product = static_cast<float>(largest) * q.factor[filter];
      float x = product + q.offset[filter];
      x = x < 1 ? x : 1;
      q.out[quad * q.filter_count + filter] = x > -1 ? x : -1;
    }
  }
}

double exact_sum(const float* values, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]);
  return sum;
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
  static constexpr BinaryKernels kTable = {"scalar", sign_quads, exact_sum, signs_about};
  return kTable;
}

}  // namespace bitfed::isa
