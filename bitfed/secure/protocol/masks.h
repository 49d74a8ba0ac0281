#pragma once

#include "bitfed/base/modular_vector.h"
#include "bitfed/secure/protocol/primitives.h"

namespace bitfed {

// Adds the mask of a seed to a vector, or takes it off: every element gets the next whole bytes of the seed's
// key stream, cut to the element's bits. To whoever does not know the seed the result is uniform.
enum class MaskSign { kAdd, kSubtract };
void apply_mask(const Secret& seed, MaskSign sign, ModularVector* vector);

}  // namespace bitfed
