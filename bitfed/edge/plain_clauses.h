#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {

// A clause that can fire and matters, as exporters write it down: the rows and columns of patches that it
// looks at, ends included, and its literals of the patches' content without those that others imply.
struct PlainClause {
  struct Literal {
    size_t y, x, plane;  // within the patch
    bool negated;
  };
  int32_t weight = 0;
  size_t first_y = 0, last_y = 0, first_x = 0, last_x = 0;
  std::vector<Literal> literals;
};

std::vector<PlainClause> plain_clauses(const TsetlinMember& member, size_t label);

}  // namespace bitfed
