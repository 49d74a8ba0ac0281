#pragma once

#include "bitfed/cuda/kernels.h"
#include "bitfed/cuda/lanes.h"

// What the kernels of batch norm have in common, four neighbouring channels at a time.
namespace bitfed::cuda {

// Rows of Norm::batch.
enum BatchRow { kMean, kInverse, kFactor, kOffset, kSum, kAlong, kBatchRows };

// The input of a norm: whole numbers, or floats.
template <bool kWhole>
BITFED_FORMULA auto input_of(const Norm& n) {
  if constexpr (kWhole) {
    return n.whole_x;
  } else {
    return n.x;
  }
}

// Four neighbouring values.
struct Four {
  float v[4];

  BITFED_FORMULA explicit Four(const float* from) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    v[0] = four.x;
    v[1] = four.y;
    v[2] = four.z;
    v[3] = four.w;
  }
  BITFED_FORMULA explicit Four(const int16_t* from) {
    const uint2 words = *reinterpret_cast<const uint2*>(from);
    v[0] = static_cast<float>(static_cast<int16_t>(words.x & 0xffff));
    v[1] = static_cast<float>(static_cast<int16_t>(words.x >> 16));
    v[2] = static_cast<float>(static_cast<int16_t>(words.y & 0xffff));
    v[3] = static_cast<float>(static_cast<int16_t>(words.y >> 16));
  }
  BITFED_FORMULA void store(float* to) const {
    *reinterpret_cast<float4*>(to) = float4{v[0], v[1], v[2], v[3]};
  }
};

BITFED_FORMULA float* batch_row(const Norm& n, uint32_t client, BatchRow row) {
  return n.batch + (size_t{client} * kBatchRows + row) * n.in.channels;
}

// What a norm multiplies and adds, of four channels.
struct ChannelValues {
  Four mean, inverse, scale, shift;

  BITFED_FORMULA ChannelValues(const Norm& n, uint32_t client, uint32_t c)
      : mean(batch_row(n, client, kMean) + c),
        inverse(batch_row(n, client, kInverse) + c),
        scale(n.scale.at(client) + c),
        shift(n.shift.at(client) + c) {}
};

BITFED_FORMULA void apply(const Norm& n, const ChannelValues& of, const Four& added, Four* x) {
#pragma unroll
  for (unsigned j = 0; j < 4; ++j) {
    const float normal = (x->v[j] - of.mean.v[j]) * of.inverse.v[j];
    x->v[j] = activate(n.activation, __fmaf_rn(normal, of.scale.v[j], of.shift.v[j]));
    if (n.added != nullptr)
      x->v[j] = smaller(all(n.bounds.max), larger(all(n.bounds.min), all(x->v[j]) + all(added.v[j]))).v;
  }
}

template <typename Kernel>
Kernel of_input(const Norm& n, Kernel of_whole, Kernel of_floats) {
  return n.whole_x != nullptr ? of_whole : of_floats;
}

}  // namespace bitfed::cuda
