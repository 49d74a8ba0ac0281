#pragma once

#include "bitfed/cuda/lanes.h"

// Products of bytes on the tensor cores. Tiles of bytes lie in shared memory, a row after the other; what is
// multiplied runs along the rows of both, so a product is a * b'.
namespace bitfed::cuda {

constexpr unsigned kDepth = 128;  // bytes of a tile's row
constexpr unsigned kChunk = 16;   // bytes that are copied at once
constexpr unsigned kChunks = kDepth / kChunk;
constexpr unsigned kGroup = 128;     // threads that multiply together
constexpr unsigned kGroupRows = 64;  // rows of a that they multiply
constexpr unsigned kRows = 2 * kGroupRows;
constexpr unsigned kThreads = 2 * kGroup;  // of a block: two groups with a tile of b in common
constexpr unsigned kRowsAtOnce = kThreads / kChunks;
constexpr unsigned kStages = 3;  // tiles of each operand that are on their way

// Where a chunk of a row lies: the order in which the tensor cores expect rows of 128 bytes, so that eight
// rows' chunks meet all banks.
BITFED_FORMULA unsigned tile_offset(unsigned row, unsigned chunk) {
  return row * kDepth + (chunk ^ (row & 7)) * kChunk;
}

template <unsigned kColumns>
constexpr unsigned stage_bytes() {
  return (kRows + kColumns) * kDepth;
}

// Shared memory of a block whose tiles of b have so many rows; tiles begin at multiples of 1024.
template <unsigned kColumns>
constexpr size_t tiles_bytes() {
  return kStages * stage_bytes<kColumns>() + 1024;
}

#ifdef BITFED_CUDA_EMULATED
inline int8_t* first_tile(int8_t* shared) {
  return shared;
}
inline void copy_chunk(int8_t* to, const int8_t* from, bool inside) {
  if (inside) {
    std::memcpy(to, from, kChunk);
  } else {
    std::memset(to, 0, kChunk);
  }
}
inline void commit_copies() {}
template <unsigned kPending>
inline void wait_for_copies() {}
#else
__device__ __forceinline__ int8_t* first_tile(int8_t* shared) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  return shared + (1024 - address % 1024) % 1024;
}
__device__ __forceinline__ void copy_chunk(int8_t* to, const int8_t* from, bool inside) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes));
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;");
}
// Also makes them visible to the tensor cores.
template <unsigned kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending));
  asm volatile("fence.proxy.async.shared::cta;");
}
#endif

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// How the tensor cores find a tile: its address, 1024 bytes between groups of eight rows, rows of 128 bytes.
__device__ __forceinline__ uint64_t tile_descriptor(const int8_t* tile) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  return uint64_t{(address & 0x3ffff) >> 4} | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 |
         uint64_t{1} << 62;
}

#define BITFED_FOUR(n) "+r"(s[n][0]), "+r"(s[n][1]), "+r"(s[n][2]), "+r"(s[n][3])
#define BITFED_THIRTY_TWO(n)                                                                      \
  BITFED_FOUR(n), BITFED_FOUR(n + 1), BITFED_FOUR(n + 2), BITFED_FOUR(n + 3), BITFED_FOUR(n + 4), \
      BITFED_FOUR(n + 5), BITFED_FOUR(n + 6), BITFED_FOUR(n + 7)
#define BITFED_64_COLUMNS(type)                                                                    \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.s32." type                                  \
               ".s8 "                                                                              \
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, " \
               "%32, %33, 1;"                                                                      \
               : BITFED_THIRTY_TWO(0)                                                              \
               : "l"(of_a), "l"(of_b))
#define BITFED_128_COLUMNS(type)                                                                   \
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k32.s32." type                                 \
               ".s8 "                                                                              \
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "  \
               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "  \
               "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, " \
               "%64, %65, 1;"                                                                      \
               : BITFED_THIRTY_TWO(0), BITFED_THIRTY_TWO(8)                                        \
               : "l"(of_a), "l"(of_b))
#endif

// sums += a * b' for the 64 rows of a that the thread's group has, and all rows of b. In sums[n][i] is the
// product of row 16 * warp + lane / 4 + 8 (i / 2) and column 8 n + 2 (lane % 4) + i % 2.
template <bool kUnsigned, unsigned kColumns>
__device__ __forceinline__ void multiply_group(const int8_t* a, const int8_t* b, int (&s)[kColumns / 8][4]) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  static_assert(kColumns == 64 || kColumns == 128);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (unsigned step = 0; step < kDepth / 32; ++step) {
    const uint64_t of_a = tile_descriptor(a) + 2 * step;
    const uint64_t of_b = tile_descriptor(b) + 2 * step;
    if constexpr (kColumns == 64) {
      if constexpr (kUnsigned) {
        BITFED_64_COLUMNS("u8");
      } else {
        BITFED_64_COLUMNS("s8");
      }
    } else {
      if constexpr (kUnsigned) {
        BITFED_128_COLUMNS("u8");
      } else {
        BITFED_128_COLUMNS("s8");
      }
    }
  }
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#else
  const unsigned lane = threadIdx.x % 32;
  const unsigned row = threadIdx.x % kGroup / 32 * 16;
#ifdef BITFED_CUDA_EMULATED
  const auto at = [](const int8_t* tile, unsigned r, unsigned k) {
    return tile[tile_offset(r, k / kChunk) + k % kChunk];
  };
  for (unsigned n = 0; n < kColumns / 8; ++n) {
    for (unsigned i = 0; i < 4; ++i) {
      auto sum = static_cast<unsigned>(s[n][i]);
      for (unsigned k = 0; k < kDepth; ++k) {
        const int8_t byte = at(a, row + lane / 4 + 8 * (i / 2), k);
        const int left = kUnsigned ? static_cast<uint8_t>(byte) : byte;
        sum += static_cast<unsigned>(left * at(b, 8 * n + 2 * (lane % 4) + i % 2, k));
      }
      s[n][i] = static_cast<int>(sum);
    }
  }
#else
#pragma unroll
  for (unsigned step = 0; step < kDepth / 32; ++step) {
    unsigned left[4];
    const auto address = static_cast<unsigned>(
        __cvta_generic_to_shared(a + tile_offset(row + lane % 16, 2 * step + lane / 16)));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(left[0]), "=r"(left[1]), "=r"(left[2]), "=r"(left[3])
                 : "r"(address));
#pragma unroll
    for (unsigned n = 0; n < kColumns / 8; n += 2) {
      unsigned right[4];
      const auto of_b = static_cast<unsigned>(__cvta_generic_to_shared(
          b + tile_offset(8 * n + lane % 8 + lane / 16 * 8, 2 * step + lane / 8 % 2)));
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(right[0]), "=r"(right[1]), "=r"(right[2]), "=r"(right[3])
                   : "r"(of_b));
#pragma unroll
      for (unsigned j = 0; j < 2; ++j) {
        int(&sum)[4] = s[n + j];
        if constexpr (kUnsigned) {
          asm volatile(
              "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
              "{%8, %9}, {%0, %1, %2, %3};"
              : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
              : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[2 * j]),
                "r"(right[2 * j + 1]));
        } else {
          asm volatile(
              "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
              "{%8, %9}, {%0, %1, %2, %3};"
              : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
              : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[2 * j]),
                "r"(right[2 * j + 1]));
        }
      }
    }
  }
#endif
#endif
}

// Copies and multiplies `count` tiles. copy(number, a, b) starts the copies of one into a stage's memory, in
// sequence; multiply(number, a, b) multiplies it.
template <unsigned kColumns, typename Copy, typename Multiply>
__device__ __forceinline__ void for_tiles(int8_t* tiles, uint32_t count, Copy copy, Multiply multiply) {
  const auto stage = [&](uint32_t number) { return tiles + number % kStages * stage_bytes<kColumns>(); };
  const auto start = [&](uint32_t number) {
    if (number < count) copy(number, stage(number), stage(number) + kRows * kDepth);
    commit_copies();
  };
#pragma unroll
  for (uint32_t i = 0; i + 1 < kStages; ++i) start(i);
  for (uint32_t number = 0; number < count; ++number) {
    wait_for_copies<kStages - 2>();
    __syncthreads();
    start(number + kStages - 1);
    multiply(number, stage(number), stage(number) + kRows * kDepth);
  }
}

}  // namespace bitfed::cuda
