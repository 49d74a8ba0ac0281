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

// A member of a model in the form that predicts fastest: only clauses that can fire and matter, each as
// the list of its included literals and, where it is convolutional, a mask for its position.
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
  std::vector<size_t> class_begin_;  // of the clauses of each class; one more at the end
  std::vector<int32_t> weights_;     // of each clause
  std::vector<uint32_t> list_starts_;
  std::vector<uint16_t> list_groups_;
  std::vector<uint16_t> lists_;
  AlignedVector<uint64_t> position_masks_;  // convolutional
};

// What a thread matches compiled clauses with: lists of its own, since matching reorders them.
class ClauseMatcher {
 public:
  explicit ClauseMatcher(const CompiledClauses& clauses);  // which must outlive it

  // Convolutional: adds what each class's firing clauses weigh, and the bias, to `sums` (class_count of
  // them): the sums of the loaded image, unclamped.
  void add_sums(const PatchLiterals& image, int64_t* sums);

  // Flat: the same for every loaded sample, class_count sums each.
  void add_sums(const FlatLiterals& samples, int64_t* sums);

 private:
  ClauseSpan span(size_t label);

  const CompiledClauses* clauses_;
  std::vector<uint16_t> lists_;
  AlignedVector<uint64_t> matches_;  // of the class in hand
  std::vector<uint64_t> fired_;
};

// The class sums of images by several sets of clauses of the same shape. One per thread, used again and
// again.
class ClauseSums {
 public:
  explicit ClauseSums(const std::vector<const CompiledClauses*>& sets);  // at least one; must outlive it

  // Of every set the unclamped sums, [sample][class], to its place of `sums`.
  void fill(const BitImages& images, std::span<int64_t* const> sums);

 private:
  size_t class_count_;
  std::vector<ClauseMatcher> matchers_;
  PatchLiterals patches_;             // convolutional
  std::optional<FlatLiterals> flat_;  // flat
};

// The same once: [set][sample][class].
std::vector<std::vector<int64_t>> class_sums(const BitImages& images,
                                             const std::vector<const CompiledClauses*>& sets);

}  // namespace bitfed
