#include "bitfed/tsetlin/clause_layout.h"

#include <algorithm>
#include <cassert>

namespace bitfed {
namespace {

// Writes the strictest literals of `clause` to `reduced`; false where they are contradictory.
bool keep_strictest(const ClauseLayout& layout, const std::vector<Thermometer>& thermometers,
                    const uint64_t* clause, uint64_t* reduced) {
  for (const Thermometer& thermometer : thermometers) {
    const Demand demand = read_demand(layout, thermometer, clause);
    if (demand.is_contradiction()) return false;
    write_demand(layout, thermometer, demand, reduced);
  }
  return true;
}

}  // namespace

ClauseLayout clause_layout(const PatchShape& shape, const BooleanizerSpec& booleanizer) {
  ClauseLayout layout;
  layout.features = shape.features();
  layout.height = shape.patch_height;
  layout.width = shape.patch_width;
  size_t feature = 0;
  const auto append = [&feature](size_t size, std::vector<Thermometer>* thermometers) {
    if (size > 0) thermometers->push_back({feature, size});
    feature += size;
  };
  append(shape.positions_y() - 1, &layout.positions);
  append(shape.positions_x() - 1, &layout.positions);
  const std::vector<size_t> sizes = thermometer_sizes(booleanizer, shape.planes);
  layout.channels = sizes.size();
  for (size_t pixel = 0; pixel < layout.height * layout.width; ++pixel) {
    for (const size_t size : sizes) append(size, &layout.content);
  }
  assert(feature == layout.features);
  return layout;
}

// The highest included feature and the lowest included negation: the strictest of each kind.
Demand read_demand(const ClauseLayout& layout, const Thermometer& thermometer, const uint64_t* clause) {
  const auto size = static_cast<int32_t>(thermometer.size);
  Demand demand{-1, size};
  for (int32_t i = 0; i < size; ++i) {
    const size_t feature = thermometer.first + static_cast<size_t>(i);
    if (get_bit(clause, feature)) demand.above = i;
    if (demand.below == size && get_bit(clause, layout.features + feature)) demand.below = i;
  }
  return demand;
}

void reduce_clause(const ClauseLayout& layout, uint64_t* clause) {
  const size_t words = words_for(layout.literals());
  std::vector<uint64_t> reduced(words);
  if (!keep_strictest(layout, layout.positions, clause, reduced.data()) ||
      !keep_strictest(layout, layout.content, clause, reduced.data())) {
    std::fill(reduced.begin(), reduced.end(), 0);
    set_bit(reduced.data(), 0);
    set_bit(reduced.data(), layout.features);
  }
  std::copy(reduced.begin(), reduced.end(), clause);
}

void reduce_clauses(const ClauseLayout& layout, BitMatrix* actions) {
  for (size_t row = 0; row < actions->rows(); ++row) reduce_clause(layout, actions->row(row));
}

}  // namespace bitfed
