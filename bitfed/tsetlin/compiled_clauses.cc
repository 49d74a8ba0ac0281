#include "bitfed/tsetlin/compiled_clauses.h"

#include <algorithm>
#include <cassert>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

// Some literal and its negation are both demanded.
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
  size_t most = 0;
  for (size_t label = 0; label < class_count; ++label) {
    for (size_t clause = 0; clause < member.clauses; ++clause) {
      add_clause(member, label * member.clauses + clause, positions);
    }
    class_begin_.push_back(weights_.size());
    most = std::max(most, class_begin_[label + 1] - class_begin_[label]);
  }
  matches_.resize(most * std::max<size_t>(1, positions.blocks()) * kBlockWords);
  fired_.resize(words_for(most));
}

void CompiledClauses::add_clause(const TsetlinMember& member, size_t row, const PatchLiterals& positions) {
  const uint64_t* actions = member.actions.row(row);
  if (member.weights[row] == 0) return;
  if (kernels().count_bits(actions, member.actions.stride()) == 0) return;  // an empty clause is silent
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

ClauseSpan CompiledClauses::span(size_t label) {
  const size_t begin = class_begin_[label];
  // A flat machine has no masks of its own.
  const size_t words = shape_.is_flat() ? 0 : blocks_for(shape_.patches()) * kBlockWords;
  return {class_begin_[label + 1] - begin,
          list_starts_.data() + begin,
          list_groups_.data() + begin,
          lists_.data(),
          position_masks_.data() + begin * words,
          words};
}

void CompiledClauses::add_sums(const PatchLiterals& image, int64_t* sums) {
  const Kernels& kernel = kernels();
  for (size_t label = 0; label < bias_.size(); ++label) {
    const ClauseSpan clauses = span(label);
    kernel.match_clauses(image.bitmaps(), image.blocks(), clauses, matches_.data(), fired_.data());
    sums[label] += bias_[label];
    sums[label] += kernel.sum_chosen(weights_.data() + class_begin_[label], fired_.data(), clauses.count);
  }
}

void CompiledClauses::add_sums(const FlatLiterals& samples, int64_t* sums) {
  const Kernels& kernel = kernels();
  for (size_t label = 0; label < bias_.size(); ++label) {
    ClauseSpan clauses = span(label);
    clauses.masks = samples.loaded();
    clauses.mask_stride = 0;
    kernel.match_clauses(samples.bitmaps(), 1, clauses, matches_.data(), fired_.data());
    alignas(64) int64_t class_sums[FlatLiterals::kSamples] = {};
    for (size_t clause = 0; clause < clauses.count; ++clause) {
      if (!get_bit(fired_.data(), clause)) continue;
      kernel.add_chosen(weights_[class_begin_[label] + clause], matches_.data() + clause * kBlockWords, 1,
                        class_sums);
    }
    for (size_t i = 0; i < samples.count(); ++i)
      sums[i * bias_.size() + label] += class_sums[i] + bias_[label];
  }
}

std::vector<std::vector<int64_t>> class_sums(const BitImages& images,
                                             const std::vector<CompiledClauses*>& sets) {
  std::vector<std::vector<int64_t>> sums(sets.size());
  if (sets.empty()) return sums;
  const PatchShape& shape = sets.front()->shape();
  std::vector<size_t> classes;
  for (size_t k = 0; k < sets.size(); ++k) {
    assert(sets[k]->shape() == shape);
    classes.push_back(sets[k]->class_count());
    sums[k].resize(images.count * classes[k]);
  }
  if (shape.is_flat()) {
    FlatLiterals samples(shape);
    for (size_t begin = 0; begin < images.count; begin += FlatLiterals::kSamples) {
      samples.load(images, begin);
      for (size_t k = 0; k < sets.size(); ++k) sets[k]->add_sums(samples, &sums[k][begin * classes[k]]);
    }
  } else {
    PatchLiterals patches(shape);
    for (size_t i = 0; i < images.count; ++i) {
      patches.load(images, i);
      for (size_t k = 0; k < sets.size(); ++k) sets[k]->add_sums(patches, &sums[k][i * classes[k]]);
    }
  }
  return sums;
}

}  // namespace bitfed
