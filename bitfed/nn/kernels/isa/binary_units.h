#pragma once

#include "bitfed/nn/kernels/binary_kernels.h"
#include "bitfed/nn/kernels/kernels.h"

namespace bitfed::isa {

const BinaryKernels& scalar_binary_kernels();
const BinaryKernels& avx2_binary_kernels();
const BinaryKernels& avx512_binary_kernels();
const BinaryKernels& neon_binary_kernels();

}  // namespace bitfed::isa
