#include "bitfed/tsetlin/compiled_clauses.h"

#include <algorithm>
#include <utility>

#include "bitfed/bits/kernels.h"

namespace bitfed {

CompiledClauses::CompiledClauses(const TsetlinMember& member, size_t class_count) : bias_(member.bias) {
  for (size_t row = 0; row < class_count * member.clauses; ++row) {
    if (member.weights[row] == 0) continue;
    const size_t first = literals_.size();
    for (size_t literal = 0; literal < member.shape.literals(); ++literal) {
      if (member.actions.get(row, literal)) literals_.push_back(static_cast<uint16_t>(literal));
    }
    if (literals_.size() == first) continue;  // an empty clause is silent
    clauses_.push_back({static_cast<uint32_t>(first), static_cast<uint16_t>(literals_.size() - first),
                        static_cast<uint16_t>(row / member.clauses), member.weights[row]});
  }
  if (member.shape.is_flat()) {
    flat_image_.resize(words_for(member.shape.literals()));
  } else {
    match_.resize(blocks_for(member.shape.patches()) * kBlockWords);
  }
}

bool CompiledClauses::fires(const Clause& clause, const PatchLiterals& image) {
  uint16_t* literals = literals_.data() + clause.first;
  if (image.shape().is_flat()) {
    return std::all_of(literals, literals + clause.count,
                       [this](uint16_t literal) { return get_bit(flat_image_.data(), literal); });
  }
  size_t last = 0;
  if (kernels().and_rows(image.bitmaps(), image.blocks(), literals, clause.count, image.everywhere(),
                         match_.data(), &last)) {
    return true;
  }
  try_first(literals, last);
  return false;
}

void CompiledClauses::add_sums(const PatchLiterals& image, int64_t* sums) {
  if (image.shape().is_flat()) image.patch(0, flat_image_.data());
  for (size_t label = 0; label < bias_.size(); ++label) sums[label] += bias_[label];
  for (const Clause& clause : clauses_) {
    if (fires(clause, image)) sums[clause.label] += clause.weight;
  }
}

}  // namespace bitfed
