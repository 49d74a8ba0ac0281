#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/data/booleanize/booleanizer.h"
#include "bitfed/tsetlin/machine/patches.h"

namespace bitfed {

// A run of features each of which implies the one before it: y > 0, y > 1, …; the levels of a colour; the
// cuts of a table's column. A bit on its own is a run of one.
struct Thermometer {
  size_t first = 0;  // feature
  size_t size = 1;
};

// How the literals of a patch hang together. Literal i is feature i, literal features + i its negation.
struct ClauseLayout {
  size_t features = 0;
  std::vector<Thermometer> positions;  // of the patch: y, then x, where it can move that way
  // Of the patch's content: row by row, column by column, `channels` to a pixel.
  std::vector<Thermometer> content;
  size_t height = 1;
  size_t width = 1;
  size_t channels = 1;

  size_t literals() const { return 2 * features; }
};

ClauseLayout clause_layout(const PatchShape& shape, const BooleanizerSpec& booleanizer);

// What a clause asks of one thermometer: feature `above` holds, feature `below` does not. Of several
// demands the strictest imply the others.
struct Demand {
  int32_t above = -1;  // -1: nothing
  int32_t below = 0;   // the thermometer's size: nothing

  bool is_contradiction() const { return above >= below; }
};

// `clause` is a row of packed literals.
Demand read_demand(const ClauseLayout& layout, const Thermometer& thermometer, const uint64_t* clause);
inline void write_demand(const ClauseLayout& layout, const Thermometer& thermometer, const Demand& demand,
                         uint64_t* clause) {
  const auto size = static_cast<int32_t>(thermometer.size);
  if (demand.above >= 0) set_bit(clause, thermometer.first + static_cast<size_t>(demand.above));
  if (demand.below < size)
    set_bit(clause, layout.features + thermometer.first + static_cast<size_t>(demand.below));
}

// Drops the literals that others imply; the clauses match the very same patches. A clause that contradicts
// itself becomes the one of feature 0 and its negation; an empty one stays empty, and no other becomes it.
void reduce_clause(const ClauseLayout& layout, uint64_t* clause);
void reduce_clauses(const ClauseLayout& layout, BitMatrix* actions);

}  // namespace bitfed
