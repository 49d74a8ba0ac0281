#include <bitfed/base/hash/random.h>
#include <bitfed/bits/bit_matrix.h>
#include <bitfed/bits/kernels.h>

#include <cstdio>

int main() {
  bitfed::RandomStream random({.seed = 1, .purpose = "foreign"});
  bitfed::BitMatrix matrix(1, 100);
  for (size_t column = 0; column < 100; ++column) matrix.set(0, column, random.below(2) == 0);
  const size_t ones = bitfed::kernels().count_bits(matrix.row(0), matrix.stride());
  std::printf("%zu of 100 bits\n", ones);
  return ones > 20 && ones < 80 ? 0 : 1;
}
