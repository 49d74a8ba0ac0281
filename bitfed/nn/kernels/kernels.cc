#include "bitfed/nn/kernels/kernels.h"

#include <cassert>

#include "bitfed/bits/kernels.h"
#include "bitfed/nn/kernels/isa/units.h"

namespace bitfed {
namespace {

// Of the instruction sets that this build has units for.
const NeuralKernels& table_for(InstructionSet instruction_set) {
  switch (instruction_set) {
#if defined(__x86_64__)
    case InstructionSet::kAmx:
    case InstructionSet::kAvx512:
    case InstructionSet::kVnni:
      return isa::avx512_neural_kernels();
    case InstructionSet::kAvx2:
      return isa::avx2_neural_kernels();
#elif defined(__aarch64__)
    case InstructionSet::kNeon:
      return isa::neon_neural_kernels();
#endif
    default:
      assert(instruction_set == InstructionSet::kScalar);
      return isa::scalar_neural_kernels();
  }
}

}  // namespace

const NeuralKernels& neural_kernels() {
  return table_for(kernels().instruction_set);
}

std::vector<const NeuralKernels*> supported_neural_kernels() {
  std::vector<const NeuralKernels*> tables;
  for (const Kernels* level : supported_kernels()) {
    const NeuralKernels& table = table_for(level->instruction_set);
    if (tables.empty() || tables.back() != &table) tables.push_back(&table);
  }
  return tables;
}

const TileKernels* tile_kernels() {
#if defined(__x86_64__)
  if (kernels().instruction_set == InstructionSet::kAmx) return &isa::amx_tile_kernels();
#endif
  return nullptr;
}

}  // namespace bitfed
