#pragma once

#include "bitfed/nn/kernels/kernels.h"
#include "bitfed/nn/kernels/tile_kernels.h"

// The tables of the units that were compiled in; ask supported_neural_kernels() which of them this CPU runs.
namespace bitfed::isa {

const NeuralKernels& scalar_neural_kernels();
const NeuralKernels& avx2_neural_kernels();
const NeuralKernels& avx512_neural_kernels();
const NeuralKernels& neon_neural_kernels();
const TileKernels& amx_tile_kernels();

}  // namespace bitfed::isa
