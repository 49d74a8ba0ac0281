#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bitfed/bits/kernels.h"
#include "bitfed/tsetlin/machine/flat_literals.h"
#include "bitfed/tsetlin/machine/patches.h"
#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {

// A member of a model in the form that predicts fastest: only clauses that can fire and have a weight, each
// as the list of its included literals and, if convolutional, a mask of the allowed positions. Immutable:
// threads may share it.
class CompiledClauses {
 public:
  CompiledClauses(const TsetlinMember& member, size_t class_count);

  const PatchShape& shape() const { return shape_; }
  size_t class_count() const { return bias_.size(); }

 private:
  friend class ClauseMatcher;
  void add_clause(const TsetlinMember& member, size_t row, const PatchLiterals& positions);
  size_t clauses_of(size_t label) const { return class_begin_[label + 1] - class_begin_[label]; }

  PatchShape shape_;
  std::vector<int32_t> bias_;
  std::vector<size_t> class_begin_;  // first clause of each class; one more entry at the end
  std::vector<int32_t> weights_;     // of each clause
  std::vector<uint32_t> list_starts_;
  std::vector<uint16_t> list_groups_;
  std::vector<uint16_t> lists_;
  AlignedVector<uint64_t> position_masks_;  // convolutional
};

// Matches compiled clauses in one thread: has its own lists, since matching reorders them.
class ClauseMatcher {
 public:
  explicit ClauseMatcher(const CompiledClauses& clauses);  // which must outlive it

  // Convolutional: adds the unclamped sums of the loaded image (bias and weights of firing clauses) to
  // `sums`, one per class.
  void add_sums(const PatchLiterals& image, int64_t* sums);

  // Flat: the same for every loaded sample: [sample][class].
  void add_sums(const FlatLiterals& samples, int64_t* sums);

 private:
  ClauseSpan span(size_t label);

  const CompiledClauses* clauses_;
  std::vector<uint16_t> lists_;
  AlignedVector<uint64_t> matches_;  // of the current class
  std::vector<uint64_t> fired_;
};

// The class sums of images for several sets of clauses of the same shape. Reusable but not thread-safe: one
// per thread.
class ClauseSums {
 public:
  explicit ClauseSums(const std::vector<const CompiledClauses*>& sets);  // at least one; must outlive it

  // Writes the unclamped sums of set s, [sample][class], to sums[s].
  void fill(const BitImages& images, std::span<int64_t* const> sums);

 private:
  size_t class_count_;
  std::vector<ClauseMatcher> matchers_;
  PatchLiterals patches_;             // convolutional
  std::optional<FlatLiterals> flat_;  // flat
};

// The same for a single use: [set][sample][class].
std::vector<std::vector<int64_t>> class_sums(const BitImages& images,
                                             const std::vector<const CompiledClauses*>& sets);

}  // namespace bitfed
