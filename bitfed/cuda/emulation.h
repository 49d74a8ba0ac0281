#pragma once

// A GPU's threads on a CPU, for tests: blocks in sequence, the threads of a block as fibres that change at
// barriers.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  dim3() = default;
  explicit dim3(unsigned of_x, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z) {}
};

struct float2 {
  float x, y;
};
struct float4 {
  float x, y, z, w;
};
struct uint2 {
  unsigned x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};

extern thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

void __syncthreads();
// All threads of a warp must come here, and as often as the other warps of a block that has barriers behind.
float __shfl_xor_sync(unsigned mask, float value, unsigned lanes);
double __shfl_xor_sync(unsigned mask, double value, unsigned lanes);
unsigned __shfl_xor_sync(unsigned mask, unsigned value, unsigned lanes);

namespace bitfed::cuda {

// The device that tests ask for.
struct EmulatedDevice {
  size_t memory = SIZE_MAX;       // bytes that fit before OutOfMemory; pinned memory is not counted
  const char* refusal = nullptr;  // why open_device() refuses it; null: it does not
};
void emulate_device(const EmulatedDevice& device);
size_t emulated_bytes();        // that are allocated
size_t emulated_allocations();  // since the program began

void* emulated_shared();
void emulate(const dim3& grid, unsigned threads, size_t shared, const std::function<void()>& kernel);

}  // namespace bitfed::cuda

inline float __fmaf_rn(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline int __float2int_rn(float x) {
  return static_cast<int>(__builtin_lrintf(x));
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}
inline uint64_t __umul64hi(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 Wide;
  return static_cast<uint64_t>(static_cast<Wide>(a) * b >> 64);
}
inline unsigned atomicMax(unsigned* at, unsigned value) {
  const unsigned before = *at;
  if (value > before) *at = value;
  return before;
}
inline int atomicAdd(int* at, int value) {
  const int before = *at;
  *at = static_cast<int>(static_cast<unsigned>(before) + static_cast<unsigned>(value));
  return before;
}
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned selector) {
  unsigned char bytes[8];
  std::memcpy(bytes, &a, 4);
  std::memcpy(bytes + 4, &b, 4);
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) result |= static_cast<unsigned>(bytes[selector >> (4 * i) & 7]) << (8 * i);
  return result;
}
