#include "bitfed/nn/kernels/binary_kernels.h"

#include <cassert>

#include "bitfed/bits/kernels.h"
#include "bitfed/nn/kernels/isa/binary_units.h"

namespace bitfed {
namespace {

// Of the instruction sets that this build has units for.
const BinaryKernels& table_for(InstructionSet instruction_set) {
  switch (instruction_set) {
#if defined(__x86_64__)
    case InstructionSet::kAmx:
    case InstructionSet::kAvx512:
      return isa::avx512_binary_kernels();
    case InstructionSet::kVnni:
    case InstructionSet::kAvx2:
      return isa::avx2_binary_kernels();
#elif defined(__aarch64__)
    case InstructionSet::kNeon:
      return isa::neon_binary_kernels();
#endif
    default:
      assert(instruction_set == InstructionSet::kScalar);
      return isa::scalar_binary_kernels();
  }
}

}  // namespace

const BinaryKernels& binary_kernels() {
  return table_for(kernels().instruction_set);
}

std::vector<const BinaryKernels*> supported_binary_kernels() {
  std::vector<const BinaryKernels*> tables;
  for (const Kernels* level : supported_kernels()) {
    const BinaryKernels& table = table_for(level->instruction_set);
    if (tables.empty() || tables.back() != &table) tables.push_back(&table);
  }
  return tables;
}

}  // namespace bitfed
