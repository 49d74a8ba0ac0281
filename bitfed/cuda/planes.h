#pragma once

#include "bitfed/cuda/lanes.h"

// Products of 16-bit integers on the tensor cores, which take bytes: an integer is 256 * high + low, a signed
// and an unsigned byte. Sums are exact in whatever order; those of the bytes wrap around, and end in range.
namespace bitfed::cuda {

// A matrix as two planes of bytes, `step` bytes from row to row; what is multiplied runs along the rows. Rows
// are a multiple of 16, the depth a multiple of 32. What lies beyond a matrix's own rows does not matter;
// what lies beyond its depth must be 0 in one of two factors.
struct Planes {
  int8_t* high = nullptr;
  int8_t* low = nullptr;
  uint32_t step = 0;
};

BITFED_HOST_DEVICE constexpr uint32_t plane_rows(uint32_t rows) {
  return (rows + 15) / 16 * 16;
}
BITFED_HOST_DEVICE constexpr uint32_t plane_depth(uint32_t depth) {
  return (depth + 31) / 32 * 32;
}
// An odd number of chunks of 16 bytes: those of eight rows meet all banks.
BITFED_HOST_DEVICE constexpr uint32_t plane_step(uint32_t depth) {
  return plane_depth(depth) + 16;
}
BITFED_HOST_DEVICE constexpr size_t plane_bytes(uint32_t rows, uint32_t depth) {
  return size_t{plane_rows(rows)} * plane_step(depth);
}
BITFED_HOST_DEVICE inline Planes planes_at(int8_t* memory, uint32_t rows, uint32_t depth) {
  return {memory, memory + plane_bytes(rows, depth), plane_step(depth)};
}

// By all threads of the block, whole planes.
BITFED_FORMULA void copy_planes(const int8_t* from, size_t bytes, int8_t* to) {
  for (size_t i = threadIdx.x; i < bytes / sizeof(uint4); i += blockDim.x)
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
}

BITFED_FORMULA void put_byte_pair(int8_t* plane, unsigned first, unsigned second) {
  *reinterpret_cast<uint16_t*>(plane) = static_cast<uint16_t>((first & 0xff) | (second & 0xff) << 8);
}
// One integer, or two neighbours of which the first has an even place.
BITFED_FORMULA void put_whole(const Planes& planes, uint32_t at, int value) {
  planes.high[at] = static_cast<int8_t>(value >> 8);
  planes.low[at] = static_cast<int8_t>(value & 0xff);
}
BITFED_FORMULA void put_whole_pair(const Planes& planes, uint32_t at, int first, int second) {
  put_byte_pair(planes.high + at, static_cast<unsigned>(first) >> 8, static_cast<unsigned>(second) >> 8);
  put_byte_pair(planes.low + at, static_cast<unsigned>(first), static_cast<unsigned>(second));
}

// Four neighbours, the first at a multiple of four.
BITFED_FORMULA void put_whole_four(const Planes& planes, uint32_t at, int a, int b, int c, int d) {
  const unsigned first = (static_cast<unsigned>(a) & 0xffff) | static_cast<unsigned>(b) << 16;
  const unsigned second = (static_cast<unsigned>(c) & 0xffff) | static_cast<unsigned>(d) << 16;
  *reinterpret_cast<unsigned*>(planes.high + at) = __byte_perm(first, second, 0x7531);
  *reinterpret_cast<unsigned*>(planes.low + at) = __byte_perm(first, second, 0x6420);
}

// i / divisor by a product, for many i: exact as long as i * divisor fits 32 bits.
struct Divisor {
  uint32_t of, inverse;

  BITFED_FORMULA explicit Divisor(uint32_t divisor) : of(divisor), inverse(0xffffffffu / divisor + 1) {}
  BITFED_FORMULA uint32_t quotient(uint32_t i) const {
    return of == 1 ? i : static_cast<uint32_t>(uint64_t{i} * inverse >> 32);
  }
};

#ifndef BITFED_CUDA_EMULATED
struct PlaneFragment {
  unsigned v[4];

  BITFED_FORMULA explicit PlaneFragment(const int8_t* row) {
    const auto address = static_cast<unsigned>(__cvta_generic_to_shared(row));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(address));
  }
};

#define BITFED_BYTE_PRODUCT(of_a, of_b)                                      \
  asm("mma.sync.aligned.m16n8k32.row.col.s32." of_a "." of_b                 \
      ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])           \
      : "r"(a.v[0]), "r"(a.v[1]), "r"(a.v[2]), "r"(a.v[3]), "r"(b.v[2 * half]), "r"(b.v[2 * half + 1]))

// sums += a * b' of 16 x 8, where b has two times eight rows.
template <bool kSignedA, bool kSignedB>
BITFED_FORMULA void add_byte_product(const PlaneFragment& a, const PlaneFragment& b, unsigned half,
                                     int (&sums)[4]) {
  if constexpr (kSignedA && kSignedB) {
    BITFED_BYTE_PRODUCT("s8", "s8");
  } else if constexpr (kSignedA) {
    BITFED_BYTE_PRODUCT("s8", "u8");
  } else if constexpr (kSignedB) {
    BITFED_BYTE_PRODUCT("u8", "s8");
  } else {
    BITFED_BYTE_PRODUCT("u8", "u8");
  }
}
#undef BITFED_BYTE_PRODUCT
#endif

// A thread's part of a 16 x 16 tile: rows lane / 4 and 8 below it, columns 2 (lane % 4) and the next of
// either half, [half of the columns][row half * 2 + column].
struct PlaneTile {
  int sums[2][4] = {};

  // += a * b' for 16 rows of each. b.low null: b has bytes alone.
  BITFED_FORMULA void add(const Planes& a, uint32_t row, const Planes& b, uint32_t column, uint32_t depth) {
#ifdef BITFED_CUDA_EMULATED
    add_plain(a, row, b, column, depth);
#else
    const unsigned lane = threadIdx.x % 32;
    const uint32_t of_a = (row + lane % 16) * a.step + lane / 16 * 16;
    const uint32_t of_b = (column + lane % 8 + lane / 16 * 8) * b.step + lane / 8 % 2 * 16;
    int high[2][4] = {};
    int middle[2][4] = {};
    for (uint32_t k = 0; k < depth; k += 32) {
      const PlaneFragment a_high(a.high + of_a + k);
      const PlaneFragment a_low(a.low + of_a + k);
      const PlaneFragment b_high(b.high + of_b + k);
      if (b.low == nullptr) {
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
          add_byte_product<true, true>(a_high, b_high, half, middle[half]);
          add_byte_product<false, true>(a_low, b_high, half, sums[half]);
        }
        continue;
      }
      const PlaneFragment b_low(b.low + of_b + k);
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        add_byte_product<true, true>(a_high, b_high, half, high[half]);
        add_byte_product<true, false>(a_high, b_low, half, middle[half]);
        add_byte_product<false, true>(a_low, b_high, half, middle[half]);
        add_byte_product<false, false>(a_low, b_low, half, sums[half]);
      }
    }
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
#pragma unroll
      for (unsigned i = 0; i < 4; ++i)
        sums[half][i] = static_cast<int>(static_cast<unsigned>(sums[half][i]) +
                                         (static_cast<unsigned>(middle[half][i]) << 8) +
                                         (static_cast<unsigned>(high[half][i]) << 16));
    }
#endif
  }

  // The same for matrices that are not in shared memory.
  BITFED_FORMULA void add_plain(const Planes& a, uint32_t row, const Planes& b, uint32_t column,
                                uint32_t depth) {
    const unsigned lane = threadIdx.x % 32;
    const auto at = [](const Planes& p, size_t place) {
      return p.low == nullptr ? p.high[place] : 256 * p.high[place] + static_cast<uint8_t>(p.low[place]);
    };
    for (unsigned i = 0; i < 8; ++i) {
      const size_t of_a = size_t{row + lane / 4 + i / 2 % 2 * 8} * a.step;
      const size_t of_b = size_t{column + i / 4 * 8 + lane % 4 * 2 + i % 2} * b.step;
      unsigned sum = 0;
      for (uint32_t k = 0; k < depth; ++k) sum += static_cast<unsigned>(at(a, of_a + k) * at(b, of_b + k));
#pragma unroll
      for (unsigned place = 0; place < 8; ++place) {
        if (place == i)
          sums[place / 4][place % 4] =
              static_cast<int>(static_cast<unsigned>(sums[place / 4][place % 4]) + sum);
      }
    }
  }

  // put(row, column, sum, sum of the next column) for all that the thread has.
  template <typename Put>
  BITFED_FORMULA void for_each(uint32_t row, uint32_t column, Put put) const {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      const uint32_t own = column + half * 8 + lane % 4 * 2;
      put(row + lane / 4, own, sums[half][0], sums[half][1]);
      put(row + lane / 4 + 8, own, sums[half][2], sums[half][3]);
    }
  }
};

// put() for all of a * b', by all threads of the block. in_shared: whether both lie there.
template <typename Put>
BITFED_FORMULA void multiply_planes(const Planes& a, uint32_t a_rows, const Planes& b, uint32_t b_rows,
                                    uint32_t depth, bool in_shared, Put put) {
  const uint32_t across = plane_rows(b_rows) / 16;
  const uint32_t tiles = plane_rows(a_rows) / 16 * across;
  for (uint32_t i = threadIdx.x / 32; i < tiles; i += blockDim.x / 32) {
    PlaneTile tile;
    if (in_shared) {
      tile.add(a, i / across * 16, b, i % across * 16, plane_depth(depth));
    } else {
      tile.add_plain(a, i / across * 16, b, i % across * 16, plane_depth(depth));
    }
    tile.for_each(i / across * 16, i % across * 16, put);
  }
}

}  // namespace bitfed::cuda
