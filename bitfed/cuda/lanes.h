#pragma once

#include "bitfed/cuda/device.h"
#include "bitfed/nn/kernels/kernels.h"

// The operations of nn/kernels/isa/loops.h for one value, and with them the formulas that the CPU uses.
namespace bitfed::cuda {

#define BITFED_FORMULA __device__ __forceinline__

struct Lanes {
  float v;
};

BITFED_FORMULA Lanes all(float value) {
  return {value};
}
BITFED_FORMULA Lanes operator+(Lanes a, Lanes b) {
  return {a.v + b.v};
}
BITFED_FORMULA Lanes operator-(Lanes a, Lanes b) {
  return {a.v - b.v};
}
BITFED_FORMULA Lanes operator*(Lanes a, Lanes b) {
  return {a.v * b.v};
}
BITFED_FORMULA Lanes operator/(Lanes a, Lanes b) {
  return {a.v / b.v};
}
BITFED_FORMULA Lanes fma(Lanes a, Lanes b, Lanes c) {
  return {__fmaf_rn(a.v, b.v, c.v)};
}
BITFED_FORMULA Lanes larger(Lanes a, Lanes b) {
  return a.v > b.v ? a : b;
}
BITFED_FORMULA Lanes smaller(Lanes a, Lanes b) {
  return a.v < b.v ? a : b;
}
BITFED_FORMULA Lanes where_at_least(Lanes a, Lanes b, Lanes x, Lanes y) {
  return a.v >= b.v ? x : y;
}
BITFED_FORMULA Lanes add_exponent(Lanes x, Lanes shifted) {
  return {__uint_as_float(__float_as_uint(x.v) + (__float_as_uint(shifted.v) << 23))};
}

#include "bitfed/nn/kernels/isa/formulas.h"

// The block's number from the end of the grid: a kernel that begins where the one before it ended finds
// values in the second-level cache.
BITFED_FORMULA uint32_t last_block_first_x() {
  return gridDim.x - 1 - blockIdx.x;
}
BITFED_FORMULA uint32_t last_block_first_y() {
  return gridDim.y - 1 - blockIdx.y;
}

// By an activation that is known at run time.
BITFED_FORMULA float activate(Activation activation, float x) {
  if (activation == Activation::kRelu) return activate<Activation::kRelu>(all(x)).v;
  if (activation == Activation::kHardtanh) return activate<Activation::kHardtanh>(all(x)).v;
  return x;
}
BITFED_FORMULA float pass_gradient(Activation activation, float gradient, float before) {
  if (activation == Activation::kRelu) return pass_gradient<Activation::kRelu>(all(gradient), all(before)).v;
  if (activation == Activation::kHardtanh)
    return pass_gradient<Activation::kHardtanh>(all(gradient), all(before)).v;
  return gradient;
}

// The sum of sixteen values by halves, in place; plain code, for the one thread that holds them.
template <typename Number>
BITFED_FORMULA Number sum_by_halves(Number* values) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) values[i] = values[i] + values[i + half];
  }
  return values[0];
}

// The same of the first sixteen threads' values, for all threads of the block; `shared` has room for 17.
template <typename Number>
BITFED_FORMULA Number sum_of_chains(Number value, Number* shared) {
  __syncthreads();
  if (threadIdx.x < 16) shared[threadIdx.x] = value;
  __syncthreads();
  if (threadIdx.x == 0) shared[16] = sum_by_halves(shared);
  __syncthreads();
  return shared[16];
}

// ------------------------------------------------------------------------------------------------ warps
constexpr unsigned kWarp = 32;
BITFED_FORMULA unsigned lane_of_warp() {
  return threadIdx.x % kWarp;
}

// combine() of all threads of a warp, the same for each: of values 16 threads apart first, so by halves.
template <typename Number, typename Combine>
BITFED_FORMULA Number combine_of_warp(Number value, Combine combine) {
#pragma unroll
  for (unsigned half = kWarp / 2; half > 0; half /= 2)
    value = combine(value, __shfl_xor_sync(~0u, value, half));
  return value;
}
template <typename Number>
BITFED_FORMULA Number sum_of_warp(Number value) {
  return combine_of_warp(value, [](Number a, Number b) { return a + b; });
}
BITFED_FORMULA unsigned largest_of_warp(unsigned value) {
  return combine_of_warp(value, [](unsigned a, unsigned b) { return a > b ? a : b; });
}

// Sums in the order of kSummedTogether, by a warp: a thread has two neighbouring chains.
template <unsigned kSums>
struct Sums {
  float of[kSums] = {};
};

// work(i, load(i)) for i = first, first + kStep, ... below last: loads are started some at a time, since the
// compiler cannot know that what is written in between is none of what they read.
template <unsigned kStep, typename Load, typename Work>
BITFED_FORMULA void for_loaded(size_t first, size_t last, Load load, Work work) {
  constexpr unsigned kAtOnce = sizeof(load(first)) <= 16 ? 8 : 4;  // registers are few
  size_t i = first;
  for (; i + (kAtOnce - 1) * kStep < last; i += kAtOnce * kStep) {
    decltype(load(i)) values[kAtOnce];
#pragma unroll
    for (unsigned k = 0; k < kAtOnce; ++k) values[k] = load(i + k * kStep);
#pragma unroll
    for (unsigned k = 0; k < kAtOnce; ++k) work(i + k * kStep, values[k]);
  }
  for (; i < last; i += kStep) work(i, load(i));
}

// Of values `first` to `last`, at most kSummedTogether: add(i, load(i), sums of value i, sums of value i + 1)
// for even i.
template <unsigned kSums, typename Load, typename Add>
BITFED_FORMULA Sums<kSums> add_together(size_t first, size_t last, Load load, Add add) {
  float even[kSums] = {};
  float odd[kSums] = {};
  for_loaded<kSumChains>(first + 2 * lane_of_warp(), last, load,
                         [&](size_t i, const auto& values) { add(i, values, even, odd); });
  Sums<kSums> sums;
#pragma unroll
  for (unsigned s = 0; s < kSums; ++s) sums.of[s] = sum_of_warp(even[s]) + sum_of_warp(odd[s]);
  return sums;
}

// The same of any number of values.
template <unsigned kSums, typename Load, typename Add>
BITFED_FORMULA Sums<kSums> add_up(size_t count, Load load, Add add) {
  Sums<kSums> sums;
  for (size_t first = 0; first < count; first += kSummedTogether) {
    const size_t last = first + kSummedTogether < count ? first + kSummedTogether : count;
    const Sums<kSums> part = add_together<kSums>(first, last, load, add);
#pragma unroll
    for (unsigned s = 0; s < kSums; ++s) sums.of[s] = sums.of[s] + part.of[s];
  }
  return sums;
}

BITFED_FORMULA float2 two_at(const float* x) {
  return *reinterpret_cast<const float2*>(x);
}

// The CPU's mean, a float of sixteen chains of doubles, from a sum in any order: *mean. The two sums differ
// by less than `error`, and if that leaves two floats, the result is false, and the chains must decide.
BITFED_FORMULA bool settle_mean(double sum, double magnitudes, size_t added, size_t count, float* mean) {
  const double error = (static_cast<double>(added) / 16 + 256) * 0x1p-53 * magnitudes;
  *mean = static_cast<float>((sum - error) / static_cast<double>(count));
  return *mean == static_cast<float>((sum + error) / static_cast<double>(count));
}

// Puts max(abs(value)) over the block's threads into *largest, as the bits of a float; values that are not
// finite count as more than all others. All threads of the block must come here.
BITFED_FORMULA void take_largest(float value, unsigned* shared, unsigned* largest) {
  shared[threadIdx.x] = __float_as_uint(value) & 0x7fffffffu;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half && shared[threadIdx.x + half] > shared[threadIdx.x])
      shared[threadIdx.x] = shared[threadIdx.x + half];
  }
  if (threadIdx.x == 0 && shared[0] > 0) atomicMax(largest, shared[0]);
  __syncthreads();
}

// What largest_magnitude() of the CPU returns for such bits: not a number if a value was not finite.
BITFED_FORMULA float largest_found(unsigned bits) {
  return bits >= 0x7f800000u ? __uint_as_float(0x7fc00000u) : __uint_as_float(bits);
}

}  // namespace bitfed::cuda
