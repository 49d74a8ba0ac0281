#pragma once

#include <string>
#include <vector>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/model/state.h"

namespace bitfed {

// The actions of automata as a U8 tensor [shape …, ceil(literals / 8)], the first literal in the lowest
// bit of the first byte. The matrix has a row for every element of `shape`.
void pack_actions(const BitMatrix& actions, const std::string& name, std::vector<uint64_t> shape,
                  State* state);

// The inverse, for an untrusted tensor: bits beyond the last literal must be zero.
BitMatrix unpack_actions(const State& state, const std::string& name, std::vector<uint64_t> shape,
                         size_t literals);

}  // namespace bitfed
