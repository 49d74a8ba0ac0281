#pragma once

#include "bitfed/bits/kernels.h"

// The tables of the units that were compiled in; ask supported_kernels() which of them this CPU runs.
namespace bitfed::isa {

const Kernels& scalar_kernels();
const Kernels& avx2_kernels();
const Kernels& avx512_kernels();
const Kernels& amx_kernels();  // those of avx512, and products in tiles for neural networks
const Kernels& neon_kernels();

}  // namespace bitfed::isa
