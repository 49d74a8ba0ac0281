#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bitfed/report/charts/clause_logic.h"

namespace bitfed {

// One clause as a picture (SVG). Left the patch, pixel by pixel: must be 1 dark, must be 0 in the
// contrast colour, free blank. Several planes share their pixel: the more of them are bound the stronger
// it is, split along the diagonal where some must be 1 and others 0; hatched where one bit must be both.
// Right the image's frame, and in it the region that the patch may cover.
std::string clause_picture(const ClauseView& clause);

// The strongest clauses of every class, as HTML: pictures where the members look at images, logic where
// they look at tables. Classes without a clause are left out; "" where that is all of them.
std::string clause_pictures(const std::vector<TsetlinMember>& members,
                            const std::vector<std::string>& class_names, size_t per_class,
                            const std::vector<std::string>& columns = {});

}  // namespace bitfed
