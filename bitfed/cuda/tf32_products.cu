// A block multiplies 128 rows by 64 or 128 columns; its eight warps have 32 rows and half of the columns
// each. Tiles along the depth come by asynchronous copies, kStages of them on their way.

#include "bitfed/cuda/tf32_products.h"

#include <algorithm>

#include "bitfed/cuda/input_phases.h"
#include "bitfed/cuda/lanes.h"

namespace bitfed::cuda {
namespace {

constexpr unsigned kBlock = 256;  // threads
constexpr unsigned kBlockRows = 128;
constexpr unsigned kBlockDepth = 32;
constexpr unsigned kOnTheirWay = 3;
constexpr unsigned kMaxParts = 16;  // of the sums of weights' gradients
constexpr unsigned kWantedBlocks = 132;

#ifdef BITFED_CUDA_EMULATED
inline void copy_vector(float* to, const float* from, bool inside) {
  for (unsigned i = 0; i < 4; ++i) to[i] = inside ? from[i] : 0.0f;
}
inline void end_copies() {}
template <unsigned kPending>
inline void wait_for_vectors() {}
#else
__device__ __forceinline__ void copy_vector(float* to, const float* from, bool inside) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes));
}
__device__ __forceinline__ void end_copies() {
  asm volatile("cp.async.commit_group;");
}
template <unsigned kPending>
__device__ __forceinline__ void wait_for_vectors() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending));
}
#endif

// A tile of kSide x kBlockDepth floats in shared memory. Neighbours along the depth are neighbours in memory,
// or those along the side are, as in the array that it is copied from; the pitch keeps a warp's reads off the
// same bank.
template <bool kAlongDepth, unsigned kSide>
struct Tile {
  static constexpr unsigned kPitch = kAlongDepth ? kBlockDepth + 4 : kSide + 8;
  static constexpr unsigned kFloats = (kAlongDepth ? kSide : kBlockDepth) * kPitch;
  static constexpr unsigned kVectors = kSide * kBlockDepth / 4 / kBlock;  // that a thread copies

  static BITFED_FORMULA unsigned at(unsigned side, unsigned k) {
    return kAlongDepth ? side * kPitch + k : k * kPitch + side;
  }
  // Where the thread's vector i begins.
  static BITFED_FORMULA unsigned side_of(unsigned i) {
    return kAlongDepth ? threadIdx.x / (kBlockDepth / 4) + i * (kBlock / (kBlockDepth / 4))
                       : threadIdx.x % (kSide / 4) * 4;
  }
  static BITFED_FORMULA unsigned depth_of(unsigned i) {
    return kAlongDepth ? threadIdx.x % (kBlockDepth / 4) * 4
                       : threadIdx.x / (kSide / 4) + i * (kBlock / (kSide / 4));
  }
};

// Division by a number that is known before the launch, in a few instructions; exact for all 32 bits.
struct Divisor {
  uint32_t by;
  uint64_t inverse;

  explicit Divisor(uint32_t divisor) : by(divisor), inverse(divisor == 1 ? 0 : UINT64_MAX / divisor + 1) {}
  BITFED_FORMULA uint32_t divide(uint32_t n) const {
    return by == 1 ? n : static_cast<uint32_t>(__umul64hi(inverse, n));
  }
};

// Rounded to the nearest of eleven significant bits, ties away from 0; the tensor cores leave out the rest.
BITFED_FORMULA unsigned to_tf32(float x) {
  return __float_as_uint(x) + 0x1000u;
}

// sums += a * b for a warp's rows and columns. In sums[m][n][i] is row 16 m + lane / 4 + 8 (i / 2) and column
// 8 n + 2 (lane % 4) + i % 2 of the warp's.
template <typename OfA, typename OfB, unsigned kColumns>
__device__ __forceinline__ void multiply_tile(const float* a, const float* b,
                                              float (&sums)[2][kColumns / 16][4]) {
  const unsigned warp = threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  const unsigned row = warp % 4 * 32 + lane / 4;
  const unsigned column = warp / 4 * (kColumns / 2);
#ifdef BITFED_CUDA_EMULATED
  const auto rounded = [](float x) { return __uint_as_float(to_tf32(x) & 0xffffe000u); };
  for (unsigned m = 0; m < 2; ++m) {
    for (unsigned n = 0; n < kColumns / 16; ++n) {
      for (unsigned i = 0; i < 4; ++i) {
        for (unsigned k = 0; k < kBlockDepth; ++k)
          sums[m][n][i] += rounded(a[OfA::at(row + 16 * m + 8 * (i / 2), k)]) *
                           rounded(b[OfB::at(column + 8 * n + 2 * (lane % 4) + i % 2, k)]);
      }
    }
  }
#else
#pragma unroll
  for (unsigned step = 0; step < kBlockDepth; step += 8) {
    const unsigned k = step + lane % 4;
    unsigned left[2][4];
#pragma unroll
    for (unsigned m = 0; m < 2; ++m) {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i)
        left[m][i] = to_tf32(a[OfA::at(row + 16 * m + 8 * (i % 2), k + 4 * (i / 2))]);
    }
#pragma unroll
    for (unsigned n = 0; n < kColumns / 16; ++n) {
      const unsigned right0 = to_tf32(b[OfB::at(column + 8 * n + lane / 4, k)]);
      const unsigned right1 = to_tf32(b[OfB::at(column + 8 * n + lane / 4, k + 4)]);
#pragma unroll
      for (unsigned m = 0; m < 2; ++m) {
        float(&s)[4] = sums[m][n];
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};"
            : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
            : "r"(left[m][0]), "r"(left[m][1]), "r"(left[m][2]), "r"(left[m][3]), "r"(right0), "r"(right1));
      }
    }
  }
#endif
}

// A Product says what rows, columns and depth are, how its operands lie, and where results go. Its Reader is
// a thread's: a(k, i) and b(k, i) are the vectors of four floats that the thread copies, null where there is
// nothing but zeros.

// y[pixel][filter] = sum of x[pixel at tap][channel] * weights[tap][channel][filter]
struct ForwardProduct {
  static constexpr bool kADepth = true;
  static constexpr bool kBDepth = false;
  RealConvolution c;

  BITFED_HOST_DEVICE uint32_t rows(uint32_t images) const {
    return images * static_cast<uint32_t>(c.out.pixels());
  }
  BITFED_HOST_DEVICE uint32_t columns() const { return c.out.channels; }
  BITFED_FORMULA uint32_t depth(uint32_t /*images*/) const { return c.kernel.taps() * c.in.channels; }

  template <typename OfA, typename OfB>
  struct Reader {
    const RealConvolution& c;
    const float* weights;
    uint32_t column;
    const float* image[OfA::kVectors];  // null: no such row
    int y[OfA::kVectors];
    int x[OfA::kVectors];

    BITFED_FORMULA Reader(const ForwardProduct& p, const Cohort& cohort, uint32_t client, uint32_t row,
                          uint32_t first_column)
        : c(p.c), weights(p.c.weights.at(client)), column(first_column + OfB::side_of(0)) {
      const uint32_t pixels = static_cast<uint32_t>(c.out.pixels());
      const uint32_t rows = p.rows(cohort.images[client]);
#pragma unroll
      for (unsigned i = 0; i < OfA::kVectors; ++i) {
        const uint32_t at = row + OfA::side_of(i);
        const uint32_t pixel = at % pixels;
        image[i] = at < rows ? c.x + (client * size_t{cohort.batch} + at / pixels) * c.in.floats() : nullptr;
        y[i] = static_cast<int>(pixel / c.out.width * c.kernel.stride) - static_cast<int>(c.kernel.padding);
        x[i] = static_cast<int>(pixel % c.out.width * c.kernel.stride) - static_cast<int>(c.kernel.padding);
      }
    }
    BITFED_FORMULA const float* a(uint32_t k, unsigned i) const {
      const uint32_t tap = k / c.in.channels;
      const int at_y = y[i] + static_cast<int>(tap / c.kernel.side);
      const int at_x = x[i] + static_cast<int>(tap % c.kernel.side);
      if (image[i] == nullptr || at_y < 0 || at_x < 0 || at_y >= static_cast<int>(c.in.height) ||
          at_x >= static_cast<int>(c.in.width))
        return nullptr;
      return image[i] + (size_t(at_y) * c.in.width + size_t(at_x)) * c.in.channels + k % c.in.channels;
    }
    BITFED_FORMULA const float* b(uint32_t k, unsigned /*i*/) const {
      return column < c.out.channels ? weights + size_t{k} * c.out.channels + column : nullptr;
    }
  };

  BITFED_FORMULA float* place(const Cohort& cohort, uint32_t client, uint32_t /*part*/, uint32_t row) const {
    return c.y + (client * size_t{cohort.batch} * c.out.pixels() + row) * c.out.channels;
  }
  BITFED_FORMULA bool adds() const {
    return false;
  }
};

// gradient[tap][channel][filter] = sum over the pixels of a part of x[pixel at tap][channel] * of
// y[pixel][filter]
struct WeightsProduct {
  static constexpr bool kADepth = false;
  static constexpr bool kBDepth = false;
  RealConvolution c;
  const float* gradient;
  uint32_t clients;
  Divisor pixels, width;  // of y

  BITFED_HOST_DEVICE uint32_t rows(uint32_t /*images*/) const { return c.kernel.taps() * c.in.channels; }
  BITFED_HOST_DEVICE uint32_t columns() const { return c.out.channels; }
  BITFED_FORMULA uint32_t depth(uint32_t images) const {
    return images * static_cast<uint32_t>(c.out.pixels());
  }

  template <typename OfA, typename OfB>
  struct Reader {
    const WeightsProduct& p;
    const RealConvolution& c;
    const float* inputs;  // null: no such row
    const float* gradients;
    int dy, dx;

    BITFED_FORMULA Reader(const WeightsProduct& product, const Cohort& cohort, uint32_t client, uint32_t row,
                          uint32_t first_column)
        : p(product), c(product.c), inputs(nullptr), gradients(nullptr) {
      const uint32_t at = row + OfA::side_of(0);
      const uint32_t tap = at / c.in.channels;
      dy = static_cast<int>(tap / c.kernel.side) - static_cast<int>(c.kernel.padding);
      dx = static_cast<int>(tap % c.kernel.side) - static_cast<int>(c.kernel.padding);
      if (at < p.rows(0)) inputs = c.x + client * size_t{cohort.batch} * c.in.floats() + at % c.in.channels;
      const uint32_t column = first_column + OfB::side_of(0);
      if (column < c.out.channels)
        gradients = p.gradient + client * size_t{cohort.batch} * c.out.floats() + column;
    }
    BITFED_FORMULA const float* a(uint32_t k, unsigned /*i*/) const {
      const uint32_t image = p.pixels.divide(k);
      const uint32_t pixel = k - image * p.pixels.by;
      const uint32_t line = p.width.divide(pixel);
      const int y = static_cast<int>(line * c.kernel.stride) + dy;
      const int x = static_cast<int>((pixel - line * p.width.by) * c.kernel.stride) + dx;
      if (inputs == nullptr || y < 0 || x < 0 || y >= static_cast<int>(c.in.height) ||
          x >= static_cast<int>(c.in.width))
        return nullptr;
      return inputs + (image * c.in.pixels() + size_t(y) * c.in.width + size_t(x)) * c.in.channels;
    }
    BITFED_FORMULA const float* b(uint32_t k, unsigned /*i*/) const {
      return gradients == nullptr ? nullptr : gradients + size_t{k} * c.out.channels;
    }
  };

  BITFED_FORMULA float* place(const Cohort& /*cohort*/, uint32_t client, uint32_t part, uint32_t row) const {
    if (c.partial == nullptr) return c.gradient.at(client) + size_t{row} * c.out.channels;
    return c.partial + ((part * size_t{clients} + client) * rows(0) + row) * c.out.channels;
  }
  BITFED_FORMULA bool adds() const { return false; }
};

// of x[pixel][channel] = sum of of y[pixel from tap][filter] * weights[tap][channel][filter]
struct InputProduct {
  static constexpr bool kADepth = true;
  static constexpr bool kBDepth = true;
  RealConvolution c;
  InputPhase phase;
  const float* gradient;
  float* x_gradient;
  bool adds_to;

  BITFED_HOST_DEVICE uint32_t rows(uint32_t images) const { return images * phase.pixels(); }
  BITFED_HOST_DEVICE uint32_t columns() const { return c.in.channels; }
  BITFED_FORMULA uint32_t depth(uint32_t /*images*/) const { return phase.taps() * c.out.channels; }

  struct Tap {
    int y, x;
  };
  BITFED_FORMULA Tap tap_of(uint32_t k) const {
    const uint32_t index = k / c.out.channels;
    return {phase.tap_y - static_cast<int>(index / phase.taps_x * c.kernel.stride),
            phase.tap_x - static_cast<int>(index % phase.taps_x * c.kernel.stride)};
  }

  template <typename OfA, typename OfB>
  struct Reader {
    const InputProduct& p;
    const float* image[OfA::kVectors];  // null: no such row
    int y[OfA::kVectors];
    int x[OfA::kVectors];
    const float* weights;
    uint32_t column;

    BITFED_FORMULA Reader(const InputProduct& product, const Cohort& cohort, uint32_t client, uint32_t row,
                          uint32_t first_column)
        : p(product), weights(product.c.weights.at(client)), column(first_column) {
      const uint32_t rows = p.rows(cohort.images[client]);
      const int stride = static_cast<int>(p.c.kernel.stride);
#pragma unroll
      for (unsigned i = 0; i < OfA::kVectors; ++i) {
        const uint32_t at = row + OfA::side_of(i);
        const uint32_t pixel = at % p.phase.pixels();
        image[i] = at < rows ? p.gradient +
                                   (client * size_t{cohort.batch} + at / p.phase.pixels()) * p.c.out.floats()
                             : nullptr;
        y[i] = static_cast<int>(pixel / p.phase.width) * stride +
               static_cast<int>(p.phase.y + p.c.kernel.padding);
        x[i] = static_cast<int>(pixel % p.phase.width) * stride +
               static_cast<int>(p.phase.x + p.c.kernel.padding);
      }
    }
    BITFED_FORMULA const float* a(uint32_t k, unsigned i) const {
      const Tap tap = p.tap_of(k);
      const int stride = static_cast<int>(p.c.kernel.stride);
      const int at_y = y[i] - tap.y;  // a multiple of the stride, or below 0
      const int at_x = x[i] - tap.x;
      if (image[i] == nullptr || at_y < 0 || at_x < 0 || at_y >= static_cast<int>(p.c.out.height) * stride ||
          at_x >= static_cast<int>(p.c.out.width) * stride)
        return nullptr;
      return image[i] + (size_t(at_y / stride) * p.c.out.width + size_t(at_x / stride)) * p.c.out.channels +
             k % p.c.out.channels;
    }
    BITFED_FORMULA const float* b(uint32_t k, unsigned i) const {
      const uint32_t channel = column + OfB::side_of(i);
      if (channel >= p.c.in.channels) return nullptr;
      const Tap tap = p.tap_of(k);
      const size_t row =
          size_t(tap.y * static_cast<int>(p.c.kernel.side) + tap.x) * p.c.in.channels + channel;
      return weights + row * p.c.out.channels + k % p.c.out.channels;
    }
  };

  BITFED_FORMULA float* place(const Cohort& cohort, uint32_t client, uint32_t /*part*/, uint32_t row) const {
    const uint32_t pixel = row % phase.pixels();
    const size_t image = client * size_t{cohort.batch} + row / phase.pixels();
    const uint32_t y = pixel / phase.width * c.kernel.stride + phase.y;
    const uint32_t x = pixel % phase.width * c.kernel.stride + phase.x;
    return x_gradient + ((image * c.in.height + y) * c.in.width + x) * c.in.channels;
  }
  BITFED_FORMULA bool adds() const {
    return adds_to;
  }
};

template <typename Product, unsigned kColumns>
struct Tiles {
  using OfA = Tile<Product::kADepth, kBlockRows>;
  using OfB = Tile<Product::kBDepth, kColumns>;
  static constexpr unsigned kFloats = OfA::kFloats + OfB::kFloats;
  static constexpr size_t kBytes = kOnTheirWay * kFloats * sizeof(float);
};

// Blocks: tiles of rows, tiles of columns, clients of each part of the depth.
template <typename Product, unsigned kColumns>
__global__ void __launch_bounds__(kBlock) multiply_tf32(Cohort cohort, Product p, uint32_t parts) {
  using OfA = typename Tiles<Product, kColumns>::OfA;
  using OfB = typename Tiles<Product, kColumns>::OfB;
  BITFED_SHARED(float, shared);
  const uint32_t client = blockIdx.z % cohort.clients;
  const uint32_t part = blockIdx.z / cohort.clients;
  const uint32_t images = cohort.images[client];
  const uint32_t rows = p.rows(images);
  const uint32_t first_row = blockIdx.x * kBlockRows;
  const uint32_t first_column = blockIdx.y * kColumns;
  if (images == 0 || first_row >= rows) return;
  const uint32_t depth = p.depth(images);
  const uint32_t tiles = (depth + kBlockDepth - 1) / kBlockDepth;
  const uint32_t of_part = (tiles + parts - 1) / parts;
  const uint32_t begin = part * of_part < tiles ? part * of_part : tiles;
  const uint32_t end = begin + of_part < tiles ? begin + of_part : tiles;

  const typename Product::template Reader<OfA, OfB> reader(p, cohort, client, first_row, first_column);
  const auto stage = [&](uint32_t tile) {
    return shared + tile % kOnTheirWay * Tiles<Product, kColumns>::kFloats;
  };
  const auto copy = [&](uint32_t tile) {
    if (tile < end) {
      float* to = stage(tile);
#pragma unroll
      for (unsigned i = 0; i < OfA::kVectors; ++i) {
        const uint32_t k = tile * kBlockDepth + OfA::depth_of(i);
        const float* from = k < depth ? reader.a(k, i) : nullptr;
        copy_vector(to + OfA::at(OfA::side_of(i), OfA::depth_of(i)), from != nullptr ? from : p.c.x,
                    from != nullptr);
      }
      to += OfA::kFloats;
#pragma unroll
      for (unsigned i = 0; i < OfB::kVectors; ++i) {
        const uint32_t k = tile * kBlockDepth + OfB::depth_of(i);
        const float* from = k < depth ? reader.b(k, i) : nullptr;
        copy_vector(to + OfB::at(OfB::side_of(i), OfB::depth_of(i)), from != nullptr ? from : p.c.x,
                    from != nullptr);
      }
    }
    end_copies();
  };

  float sums[2][kColumns / 16][4] = {};
#pragma unroll
  for (uint32_t i = 0; i + 1 < kOnTheirWay; ++i) copy(begin + i);
  for (uint32_t tile = begin; tile < end; ++tile) {
    wait_for_vectors<kOnTheirWay - 2>();
    __syncthreads();
    copy(tile + kOnTheirWay - 1);
    multiply_tile<OfA, OfB, kColumns>(stage(tile), stage(tile) + OfA::kFloats, sums);
  }

  const unsigned warp = threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned m = 0; m < 2; ++m) {
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      const uint32_t row = first_row + warp % 4 * 32 + 16 * m + 8 * half + lane / 4;
      if (row >= rows) continue;
      float* to = p.place(cohort, client, part, row);
#pragma unroll
      for (unsigned n = 0; n < kColumns / 16; ++n) {
        const uint32_t column = first_column + warp / 4 * (kColumns / 2) + 8 * n + lane % 4 * 2;
        if (column >= p.columns()) continue;
        float2 result{sums[m][n][2 * half], sums[m][n][2 * half + 1]};
        auto* at = reinterpret_cast<float2*>(to + column);
        if (p.adds()) {
          const float2 before = *at;
          result = {before.x + result.x, before.y + result.y};
        }
        *at = result;
      }
    }
  }
}

// The parts' sums in sequence.
__global__ void add_parts(Cohort cohort, WeightsProduct p, uint32_t parts) {
  const uint32_t client = blockIdx.y;
  const size_t count = size_t{p.rows(0)} * p.c.out.channels;
  const size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= count || cohort.images[client] == 0) return;
  float sum = 0;
  for (uint32_t part = 0; part < parts; ++part)
    sum += p.c.partial[(part * size_t{cohort.clients} + client) * count + at];
  p.c.gradient.at(client)[at] = sum;
}

__global__ void clear_phase(Cohort cohort, InputProduct p) {
  const uint32_t client = blockIdx.y;
  const size_t at = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const uint32_t channels = p.c.in.channels;
  if (at >= size_t{p.rows(cohort.images[client])} * channels) return;
  p.place(cohort, client, 0, static_cast<uint32_t>(at / channels))[at % channels] = 0;
}

size_t tiles_of(size_t count, size_t of_one) {
  return (count + of_one - 1) / of_one;
}

template <unsigned kColumns, typename Product>
void multiply_columns(const Cohort& cohort, const Product& p, uint32_t parts, const Stream& stream) {
  launch(multiply_tf32<Product, kColumns>,
         Blocks{tiles_of(p.rows(cohort.batch), kBlockRows), tiles_of(p.columns(), kColumns),
                size_t{cohort.clients} * parts},
         kBlock, Tiles<Product, kColumns>::kBytes, stream, cohort, p, parts);
}

template <typename Product>
void multiply(const Cohort& cohort, const Product& p, uint32_t parts, const Stream& stream) {
  if (p.columns() <= 64) {
    multiply_columns<64>(cohort, p, parts, stream);
  } else {
    multiply_columns<128>(cohort, p, parts, stream);
  }
}

// By the layer's shape alone: the bits must not depend on how many clients train together.
uint32_t parts_of(const RealConvolution& c) {
  const size_t columns = c.out.channels <= 64 ? 64 : 128;
  const size_t tiles =
      tiles_of(size_t{c.kernel.taps()} * c.in.channels, kBlockRows) * tiles_of(c.out.channels, columns);
  return static_cast<uint32_t>(std::clamp<size_t>(kWantedBlocks / tiles, 1, kMaxParts));
}

}  // namespace

bool tf32_takes(const RealConvolution& c) {
  return c.in.channels % kLanes == 0 && c.out.channels % kLanes == 0;
}

size_t tf32_partial_floats(const Cohort& cohort, const RealConvolution& c) {
  const uint32_t parts = parts_of(c);
  return parts == 1 ? 0 : size_t{parts} * cohort.clients * c.kernel.taps() * c.in.channels * c.out.channels;
}

void tf32_forward(const Cohort& cohort, const RealConvolution& c, const Stream& stream) {
  multiply(cohort, ForwardProduct{c}, 1, stream);
}

void tf32_weights(const Cohort& cohort, const RealConvolution& c, const float* gradient,
                  const Stream& stream) {
  const WeightsProduct p{c, gradient, cohort.clients, Divisor(static_cast<uint32_t>(c.out.pixels())),
                         Divisor(c.out.width)};
  const uint32_t parts = parts_of(c);
  multiply(cohort, p, parts, stream);
  if (parts == 1) return;
  const size_t count = size_t{p.rows(0)} * c.out.channels;
  launch(add_parts, Blocks{tiles_of(count, kBlock), cohort.clients}, kBlock, 0, stream, cohort, p, parts);
}

void tf32_input(const Cohort& cohort, const RealConvolution& c, const float* gradient, bool adds,
                float* x_gradient, const Stream& stream) {
  for (const InputPhase& phase : input_phases(c)) {
    const InputProduct p{c, phase, gradient, x_gradient, adds};
    if (phase.taps() > 0) {
      multiply(cohort, p, 1, stream);
    } else if (!adds) {
      launch(clear_phase,
             Blocks{tiles_of(size_t{p.rows(cohort.batch)} * c.in.channels, kBlock), cohort.clients}, kBlock,
             0, stream, cohort, p);
    }
  }
}

}  // namespace bitfed::cuda
