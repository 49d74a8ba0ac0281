#include "bitfed/nn/kernels/kernels.h"

#include <cassert>
#include <string_view>

#include "bitfed/bits/kernels.h"
#include "bitfed/nn/kernels/isa/units.h"

namespace bitfed {
namespace {

const NeuralKernels& table_named(std::string_view name) {
#if defined(__x86_64__)
  if (name == "avx512" || name == "amx") return isa::avx512_neural_kernels();
  if (name == "avx2") return isa::avx2_neural_kernels();
#elif defined(__aarch64__)
  if (name == "neon") return isa::neon_neural_kernels();
#endif
  assert(name == "scalar");
  return isa::scalar_neural_kernels();
}

}  // namespace

const NeuralKernels& neural_kernels() {
  return table_named(kernels().name);
}

std::vector<const NeuralKernels*> supported_neural_kernels() {
  std::vector<const NeuralKernels*> tables;
  for (const Kernels* level : supported_kernels()) {
    const NeuralKernels& table = table_named(level->name);
    if (tables.empty() || tables.back() != &table) tables.push_back(&table);
  }
  return tables;
}

const TileKernels* tile_kernels() {
#if defined(__x86_64__)
  if (kernels().name == std::string_view("amx")) return &isa::amx_tile_kernels();
#endif
  return nullptr;
}

}  // namespace bitfed
