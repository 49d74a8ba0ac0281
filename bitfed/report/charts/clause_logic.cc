#include "bitfed/report/charts/clause_logic.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

#include "bitfed/tsetlin/clause_layout.h"

namespace bitfed {
namespace {

// Narrows the range by the thermometer bits that begin at literal `begin`: y > t means first >= t + 1,
// its negation last <= t.
PositionRange read_range(const TsetlinMember& member, size_t row, size_t begin, size_t positions) {
  PositionRange range{0, positions - 1, true};
  for (size_t t = 0; t + 1 < positions; ++t) {
    if (member.actions.get(row, begin + t)) {
      range.first = std::max(range.first, t + 1);
      range.is_free = false;
    }
    if (member.actions.get(row, member.shape.features() + begin + t)) {
      range.last = std::min(range.last, t);
      range.is_free = false;
    }
  }
  return range;
}

size_t included_literals(const TsetlinMember& member, size_t row) {
  size_t count = 0;
  for (const uint64_t word : std::span(member.actions.row(row), member.actions.stride())) {
    count += static_cast<size_t>(std::popcount(word));
  }
  return count;
}

// The literals that no others imply; feature 0 and its negation where they contradict each other.
std::vector<uint64_t> reduced(const TsetlinMember& member, const ClauseLayout& layout, size_t row) {
  const uint64_t* words = member.actions.row(row);
  std::vector<uint64_t> clause(words, words + words_for(layout.literals()));
  reduce_clause(layout, clause.data());
  return clause;
}

ClauseView view(const TsetlinMember& member, const ClauseLayout& layout, size_t member_index, size_t row) {
  const PatchShape& shape = member.shape;
  const std::vector<uint64_t> clause = reduced(member, layout, row);
  return {.member = &member,
          .member_index = member_index,
          .row = row,
          .weight = member.weights[row],
          .y = read_range(member, row, 0, shape.positions_y()),
          .x = read_range(member, row, shape.positions_y() - 1, shape.positions_x()),
          .literals = included_literals(member, row),
          .is_contradiction = get_bit(clause.data(), 0) && get_bit(clause.data(), layout.features)};
}

// Quantile bits lie column by column, a bit for each cut.
std::string table_bit(const BooleanizerSpec& booleanizer, size_t bit, bool is_one,
                      const std::vector<std::string>& columns) {
  for (size_t column = 0; column < booleanizer.cuts.size(); ++column) {
    const std::vector<float>& cuts = booleanizer.cuts[column];
    if (bit < cuts.size()) {
      const std::string name = column < columns.size() ? columns[column] : fmt::format("column {}", column);
      return fmt::format("{} {} {:.4g}", name, is_one ? ">" : "<=", cuts[bit]);
    }
    bit -= cuts.size();
  }
  return fmt::format("{}b({})", is_one ? "" : "!", bit);
}

std::string literal_text(const TsetlinMember& member, size_t bit, bool is_one,
                         const std::vector<std::string>& columns) {
  const PatchShape& shape = member.shape;
  if (member.booleanizer.kind == "quantile") return table_bit(member.booleanizer, bit, is_one, columns);
  const size_t pixel = bit / shape.planes;
  const std::string_view sign = is_one ? "" : "!";
  const size_t y = pixel / shape.patch_width;
  const size_t x = pixel % shape.patch_width;
  if (shape.planes == 1) return fmt::format("{}p({},{})", sign, y, x);
  return fmt::format("{}p({},{},{})", sign, y, x, bit % shape.planes);
}

std::string range_text(std::string_view name, const PositionRange& range) {
  if (range.empty()) return fmt::format("{} nowhere", name);
  if (range.first == range.last) return fmt::format("{} = {}", name, range.first);
  return fmt::format("{} in {}..{}", name, range.first, range.last);
}

std::string position_text(const ClauseView& clause) {
  std::string text;
  if (!clause.y.is_free) text = range_text("y", clause.y);
  if (!clause.x.is_free) text += (text.empty() ? "" : ", ") + range_text("x", clause.x);
  return text;
}

}  // namespace

double ClauseView::vote() const {
  // A scale of 0 is known only once samples are predicted.
  return member->scale > 0 ? weight / static_cast<double>(member->scale) : weight;
}

bool ClauseView::must_be_one(size_t bit) const {
  return member->actions.get(row, member->shape.position_bits() + bit);
}

bool ClauseView::must_be_zero(size_t bit) const {
  return member->actions.get(row, member->shape.features() + member->shape.position_bits() + bit);
}

size_t class_count(const std::vector<TsetlinMember>& members) {
  size_t count = 0;
  for (const TsetlinMember& member : members) {
    if (member.clauses > 0) count = std::max(count, member.weights.size() / member.clauses);
  }
  return count;
}

std::vector<ClauseView> strongest_clauses(const std::vector<TsetlinMember>& members, size_t class_index,
                                          size_t count) {
  std::vector<ClauseView> found;
  for (size_t i = 0; i < members.size(); ++i) {
    const TsetlinMember& member = members[i];
    const ClauseLayout layout = clause_layout(member.shape, member.booleanizer);
    for (size_t clause = 0; clause < member.clauses; ++clause) {
      const size_t row = class_index * member.clauses + clause;
      if (row >= member.weights.size() || member.weights[row] <= 0) continue;
      if (included_literals(member, row) > 0) found.push_back(view(member, layout, i, row));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const ClauseView& a, const ClauseView& b) {
    return a.is_contradiction != b.is_contradiction ? b.is_contradiction : a.vote() > b.vote();
  });
  found.resize(std::min(found.size(), count));
  return found;
}

std::string clause_text(const ClauseView& clause, size_t literal_limit,
                        const std::vector<std::string>& columns) {
  std::string content;
  size_t literals = 0;
  const auto add = [&](size_t bit, bool is_one) {
    if (++literals > literal_limit) return;
    content += (content.empty() ? "" : " & ") + literal_text(*clause.member, bit, is_one, columns);
  };
  const PatchShape& shape = clause.member->shape;
  const std::vector<uint64_t> needed =
      reduced(*clause.member, clause_layout(shape, clause.member->booleanizer), clause.row);
  for (size_t bit = 0; bit < shape.content_bits(); ++bit) {
    const size_t feature = shape.position_bits() + bit;
    const auto is_needed = [&](size_t literal) {
      return clause.is_contradiction || get_bit(needed.data(), literal);
    };
    if (clause.must_be_one(bit) && is_needed(feature)) add(bit, true);
    if (clause.must_be_zero(bit) && is_needed(shape.features() + feature)) add(bit, false);
  }
  if (literals > literal_limit) content += fmt::format(" … ({} more)", literals - literal_limit);
  const std::string position = position_text(clause);
  const std::string_view colon = position.empty() || content.empty() ? "" : ": ";
  return fmt::format("{:+.3g}  {}{}{}", clause.vote(), position, colon, content);
}

std::vector<std::string> strongest_clauses_text(const std::vector<TsetlinMember>& members,
                                                const std::vector<std::string>& class_names, size_t per_class,
                                                const std::vector<std::string>& columns) {
  std::vector<std::string> lines;
  for (size_t c = 0; c < class_count(members); ++c) {
    lines.push_back(c < class_names.size() ? class_names[c] : fmt::format("class {}", c));
    for (const ClauseView& clause : strongest_clauses(members, c, per_class)) {
      lines.push_back("  " + clause_text(clause, 24, columns));
    }
  }
  return lines;
}

}  // namespace bitfed
