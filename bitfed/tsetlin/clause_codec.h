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

// Clauses and weights as sent in messages: range coded, near their entropy. Lossless for any clauses; reduced
// ones (see reduce_clauses) are short. docs/reference/messages.md describes the bytes.

struct WeightedClauses {
  BitMatrix actions;             // a row per clause, a column per literal
  std::vector<int32_t> weights;  // one per clause; positive

  bool operator==(const WeightedClauses&) const = default;
};

// A weight grows by at most one per sample and epoch; larger weights cannot come from training and are
// refused.
inline constexpr int32_t kMaximumWeight = 1 << 24;

Bytes encode_clauses(const ClauseLayout& layout, const WeightedClauses& clauses);

// The inverse, for untrusted bytes. `count` and the layout come from the recipe, and memory depends only on
// them. Accepts exactly the outputs of encode_clauses for weights in range; anything else is an input_error
// that begins with `source`.
WeightedClauses decode_clauses(const ClauseLayout& layout, size_t count, std::span<const uint8_t> bytes,
                               const std::string& source);

// The same as a U8 tensor [bytes] of a message.
void add_clauses(const ClauseLayout& layout, const WeightedClauses& clauses, const std::string& name,
                 State* state);
WeightedClauses read_clauses(const ClauseLayout& layout, size_t count, const std::string& name,
                             const State& state);

}  // namespace bitfed
