#include "bitfed/tsetlin/machine/compiled_clauses.h"

#include <algorithm>
#include <cassert>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

// Whether the clause includes a feature and its negation.
bool contradicts_itself(const BitMatrix& actions, size_t row, size_t features) {
  for (size_t feature = 0; feature < features; ++feature) {
    if (actions.get(row, feature) && actions.get(row, features + feature)) return true;
  }
  return false;
}

}  // namespace

CompiledClauses::CompiledClauses(const TsetlinMember& member, size_t class_count)
    : shape_(member.shape), bias_(member.bias), class_begin_{0} {
  const PatchLiterals positions(shape_);
  for (size_t label = 0; label < class_count; ++label) {
    for (size_t clause = 0; clause < member.clauses; ++clause) {
      add_clause(member, label * member.clauses + clause, positions);
    }
    class_begin_.push_back(weights_.size());
  }
}

void CompiledClauses::add_clause(const TsetlinMember& member, size_t row, const PatchLiterals& positions) {
  const uint64_t* actions = member.actions.row(row);
  if (member.weights[row] == 0) return;
  if (kernels().count_bits(actions, member.actions.stride()) == 0) return;  // an empty clause never fires
  if (contradicts_itself(member.actions, row, shape_.features())) return;
  AlignedVector<uint64_t> mask(positions.blocks() * kBlockWords);
  if (!shape_.is_flat()) {
    positions.position_mask(actions, mask.data());
    if (std::all_of(mask.begin(), mask.end(), [](uint64_t word) { return word == 0; })) return;
  }
  position_masks_.insert(position_masks_.end(), mask.begin(), mask.end());
  const size_t start = lists_.size();
  for (size_t literal = 0; literal < shape_.literals(); ++literal) {
    if (member.actions.get(row, literal) && !shape_.is_position(literal))
      lists_.push_back(static_cast<uint16_t>(literal));
  }
  const size_t groups = std::max<size_t>(1, (lists_.size() - start + kLiteralGroup - 1) / kLiteralGroup);
  lists_.resize(start + groups * kLiteralGroup, positions.filler());
  if (lists_.size() > UINT32_MAX) throw input_error("a model of more than {} literals", UINT32_MAX);
  list_starts_.push_back(static_cast<uint32_t>(start));
  list_groups_.push_back(static_cast<uint16_t>(groups));
  weights_.push_back(member.weights[row]);
}

ClauseMatcher::ClauseMatcher(const CompiledClauses& clauses) : clauses_(&clauses), lists_(clauses.lists_) {
  size_t max_clauses = 0;
  for (size_t label = 0; label < clauses.class_count(); ++label)
    max_clauses = std::max(max_clauses, clauses.clauses_of(label));
  matches_.resize(max_clauses * blocks_for(clauses.shape().patches()) * kBlockWords);
  fired_.resize(words_for(max_clauses));
}

ClauseSpan ClauseMatcher::span(size_t label) {
  const size_t begin = clauses_->class_begin_[label];
  // A flat machine has no position masks.
  const PatchShape& shape = clauses_->shape();
  const size_t words = shape.is_flat() ? 0 : blocks_for(shape.patches()) * kBlockWords;
  return {clauses_->clauses_of(label),
          clauses_->list_starts_.data() + begin,
          clauses_->list_groups_.data() + begin,
          lists_.data(),
          static_cast<uint16_t>(shape.literals()),
          clauses_->position_masks_.data() + begin * words,
          words};
}

void ClauseMatcher::add_sums(const PatchLiterals& image, int64_t* sums) {
  const Kernels& kernel = kernels();
  for (size_t label = 0; label < clauses_->class_count(); ++label) {
    const ClauseSpan clauses = span(label);
    kernel.match_clauses(image.bitmaps(), image.blocks(), clauses, matches_.data(), fired_.data());
    sums[label] += clauses_->bias_[label];
    sums[label] += kernel.sum_chosen(clauses_->weights_.data() + clauses_->class_begin_[label], fired_.data(),
                                     clauses.count);
  }
}

void ClauseMatcher::add_sums(const FlatLiterals& samples, int64_t* sums) {
  const Kernels& kernel = kernels();
  const size_t classes = clauses_->class_count();
  for (size_t label = 0; label < classes; ++label) {
    ClauseSpan clauses = span(label);
    clauses.masks = samples.loaded();
    clauses.mask_stride = 0;
    kernel.match_clauses(samples.bitmaps(), 1, clauses, matches_.data(), fired_.data());
    const int32_t* weights = clauses_->weights_.data() + clauses_->class_begin_[label];
    alignas(64) int64_t class_sums[FlatLiterals::kSamples] = {};
    for (size_t clause = 0; clause < clauses.count; ++clause) {
      if (!get_bit(fired_.data(), clause)) continue;
      kernel.add_chosen(weights[clause], matches_.data() + clause * kBlockWords, 1, class_sums);
    }
    for (size_t i = 0; i < samples.count(); ++i)
      sums[i * classes + label] += class_sums[i] + clauses_->bias_[label];
  }
}

ClauseSums::ClauseSums(const std::vector<const CompiledClauses*>& sets)
    : class_count_(sets.front()->class_count()), patches_(sets.front()->shape()) {
  const PatchShape& shape = sets.front()->shape();
  for (const CompiledClauses* set : sets) {
    assert(set->shape() == shape && set->class_count() == class_count_);
    matchers_.emplace_back(*set);
  }
  if (shape.is_flat()) flat_.emplace(shape);
}

void ClauseSums::fill(const BitImages& images, std::span<int64_t* const> sums) {
  for (size_t k = 0; k < matchers_.size(); ++k) std::fill_n(sums[k], images.count * class_count_, int64_t{0});
  for (size_t first = 0; first < images.count;) {
    const size_t begin = first * class_count_;
    if (flat_) {
      flat_->load(images, first);
      for (size_t k = 0; k < matchers_.size(); ++k) matchers_[k].add_sums(*flat_, sums[k] + begin);
      first += flat_->count();
    } else {
      patches_.load(images, first);
      for (size_t k = 0; k < matchers_.size(); ++k) matchers_[k].add_sums(patches_, sums[k] + begin);
      first += 1;
    }
  }
}

std::vector<std::vector<int64_t>> class_sums(const BitImages& images,
                                             const std::vector<const CompiledClauses*>& sets) {
  std::vector<std::vector<int64_t>> sums(sets.size());
  std::vector<int64_t*> outputs;
  for (std::vector<int64_t>& of_set : sums) {
    of_set.resize(images.count * sets.front()->class_count());
    outputs.push_back(of_set.data());
  }
  ClauseSums(sets).fill(images, outputs);
  return sums;
}

}  // namespace bitfed
