#include "bitfed/edge/plain_clauses.h"

#include "bitfed/bits/kernels.h"
#include "bitfed/tsetlin/clause_layout.h"

namespace bitfed {
namespace {

PlainClause plain_clause(const PatchShape& shape, const ClauseLayout& layout, const uint64_t* clause) {
  const size_t up = shape.positions_y() - 1;
  const size_t along = shape.positions_x() - 1;
  const Demand y = read_demand(layout, {0, up}, clause);
  const Demand x = read_demand(layout, {up, along}, clause);
  PlainClause plain;
  plain.first_y = static_cast<size_t>(y.above + 1);
  plain.last_y = static_cast<size_t>(y.below);
  plain.first_x = static_cast<size_t>(x.above + 1);
  plain.last_x = static_cast<size_t>(x.below);
  for (size_t literal = 0; literal < shape.literals(); ++literal) {
    if (!get_bit(clause, literal) || shape.is_position(literal)) continue;
    const size_t content = literal % shape.features() - shape.position_bits();
    const size_t pixel = content / shape.planes;
    plain.literals.push_back({pixel / shape.patch_width, pixel % shape.patch_width, content % shape.planes,
                              literal >= shape.features()});
  }
  return plain;
}

}  // namespace

std::vector<PlainClause> plain_clauses(const TsetlinMember& member, size_t label) {
  const ClauseLayout layout = clause_layout(member.shape, member.booleanizer);
  std::vector<PlainClause> plain;
  for (size_t row = label * member.clauses; row < (label + 1) * member.clauses; ++row) {
    if (member.weights[row] == 0) continue;
    std::vector<uint64_t> clause(member.actions.row(row), member.actions.row(row) + member.actions.stride());
    if (kernels().count_bits(clause.data(), clause.size()) == 0) continue;  // an empty clause is silent
    reduce_clause(layout, clause.data());
    const bool contradiction = get_bit(clause.data(), 0) && get_bit(clause.data(), member.shape.features());
    if (contradiction) continue;
    plain.push_back(plain_clause(member.shape, layout, clause.data()));
    plain.back().weight = member.weights[row];
  }
  return plain;
}

}  // namespace bitfed
