#include "bitfed/nn/kernels/binary_kernels.h"

#include <cassert>
#include <string_view>

#include "bitfed/bits/kernels.h"
#include "bitfed/nn/kernels/isa/binary_units.h"

namespace bitfed {
namespace {

const BinaryKernels& table_named(std::string_view name) {
#if defined(__x86_64__)
  if (name == "avx512" || name == "amx") return isa::avx512_binary_kernels();
  if (name == "avx2") return isa::avx2_binary_kernels();
#elif defined(__aarch64__)
  if (name == "neon") return isa::neon_binary_kernels();
#endif
  assert(name == "scalar");
  return isa::scalar_binary_kernels();
}

}  // namespace

const BinaryKernels& binary_kernels() {
  return table_named(kernels().name);
}

std::vector<const BinaryKernels*> supported_binary_kernels() {
  std::vector<const BinaryKernels*> tables;
  for (const Kernels* level : supported_kernels()) {
    const BinaryKernels& table = table_named(level->name);
    if (tables.empty() || tables.back() != &table) tables.push_back(&table);
  }
  return tables;
}

}  // namespace bitfed
