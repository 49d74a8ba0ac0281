#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bitfed/base/byte_io.h"
#include "bitfed/bits/bit_matrix.h"
#include "bitfed/model/state.h"
#include "bitfed/tsetlin/clause_layout.h"

namespace bitfed {

// Clauses with their weights as messages carry them: range coded, near their entropy. Any clauses survive
// the way; reduced ones (see reduce_clauses) are short. docs/formats.md describes the bytes.

struct WeightedClauses {
  BitMatrix actions;             // a row a clause, a column a literal
  std::vector<int32_t> weights;  // a clause each; positive

  bool operator==(const WeightedClauses&) const = default;
};

// Weights grow by at most one a sample and epoch; more is not a machine's work, and is refused.
inline constexpr int32_t kMaximumWeight = 1 << 24;

Bytes encode_clauses(const ClauseLayout& layout, const WeightedClauses& clauses);

// The inverse, for bytes that came from outside. `count` and the layout come from the recipe, and what is
// allocated depends on them alone. Accepts exactly what encode_clauses makes of some clauses whose weights
// are in range; anything else is an input_error that begins with `source`.
WeightedClauses decode_clauses(const ClauseLayout& layout, size_t count, std::span<const uint8_t> bytes,
                               const std::string& source);

// The same as a U8 tensor [bytes] of a message.
void add_clauses(const ClauseLayout& layout, const WeightedClauses& clauses, const std::string& name,
                 State* state);
WeightedClauses read_clauses(const ClauseLayout& layout, size_t count, const std::string& name,
                             const State& state);

}  // namespace bitfed
