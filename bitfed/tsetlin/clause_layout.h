#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/data/booleanize/booleanizer.h"
#include "bitfed/tsetlin/machine/patches.h"

namespace bitfed {

// A thermometer code: a run of features each of which implies the one before it: y > 0, y > 1, …; the levels
// of a colour; the cuts of a table's column. A single bit is a run of one.
struct Thermometer {
  size_t first = 0;  // feature
  size_t size = 1;
};

// The dependencies among the literals of a patch. Literal i is feature i, literal features + i its negation.
struct ClauseLayout {
  size_t features = 0;
  std::vector<Thermometer> positions;  // of the patch: y, then x, for each axis with more than one position
  // Of the patch's content: by row, column, channel.
  std::vector<Thermometer> content;
  size_t height = 1;
  size_t width = 1;
  size_t channels = 1;

  size_t literals() const { return 2 * features; }
};

ClauseLayout clause_layout(const PatchShape& shape, const BooleanizerSpec& booleanizer);

// What a clause demands of one thermometer: feature `above` is true and feature `below` is false. Of several
// literals the strictest imply the others.
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

// Drops the literals that others imply; the clauses match the same patches as before. A contradictory clause
// becomes feature 0 and its negation; an empty clause stays empty, and no other clause becomes empty.
void reduce_clause(const ClauseLayout& layout, uint64_t* clause);
void reduce_clauses(const ClauseLayout& layout, BitMatrix* actions);

}  // namespace bitfed
