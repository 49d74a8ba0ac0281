#pragma once

#include "bitfed/bits/kernels.h"

// The tables of the units that were compiled in; ask supported_kernels() which of them this CPU runs.
namespace bitfed::isa {

const Kernels& scalar_kernels();
const Kernels& avx2_kernels();
const Kernels& vnni_kernels();  // the table of avx2; neural networks have AVX-512 for real numbers
const Kernels& avx512_kernels();
const Kernels& amx_kernels();  // the table of avx512; neural networks add tile products
const Kernels& neon_kernels();

}  // namespace bitfed::isa
