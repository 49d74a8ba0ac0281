#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {

// A clause's demand on one coordinate of the patch: first <= position <= last; first > last where its
// literals contradict each other.
struct PositionRange {
  size_t first = 0;
  size_t last = 0;
  bool is_free = true;  // nothing was demanded

  bool empty() const { return first > last; }
};

// One clause, taken apart; a view into its member, which must outlive it.
struct ClauseView {
  const TsetlinMember* member = nullptr;
  size_t member_index = 0;
  size_t row = 0;  // of the member's actions
  int32_t weight = 0;
  PositionRange y;
  PositionRange x;
  size_t literals = 0;            // included ones, positions among them
  bool is_contradiction = false;  // it matches nothing

  // What the clause adds to its class's score when it fires.
  double vote() const;

  // Whether a bit of the patch (content: row by row, then column, then plane) must be 1, must be 0.
  bool must_be_one(size_t bit) const;
  bool must_be_zero(size_t bit) const;
};

// The number of classes of the members.
size_t class_count(const std::vector<TsetlinMember>& members);

// The clauses that vote most for the class, over all members: not empty, positive weight, the largest
// vote first, the earlier one among equals; contradictory ones, which never vote, after all others.
std::vector<ClauseView> strongest_clauses(const std::vector<TsetlinMember>& members, size_t class_index,
                                          size_t count);

// The vote, where, what: "+0.037  y in 3..9, x in 0..4: p(0,2) & !p(4,1)": p(row, column) within the patch,
// with the plane as a third number where there are several; a table's bits as "height > 0.5", or as
// "column 3 > 0.5" where the names of its `columns` are not known. Literals that others imply (height > 0.3)
// are left out. After `literal_limit` literals comes "… (12 more)".
std::string clause_text(const ClauseView& clause, size_t literal_limit = 24,
                        const std::vector<std::string>& columns = {});

// For every class its name, then its strongest clauses, indented, one per line.
std::vector<std::string> strongest_clauses_text(const std::vector<TsetlinMember>& members,
                                                const std::vector<std::string>& class_names, size_t per_class,
                                                const std::vector<std::string>& columns = {});

}  // namespace bitfed
