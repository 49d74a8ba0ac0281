#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "bitfed/base/hash/random.h"
#include "bitfed/bits/kernels.h"
#include "bitfed/tsetlin/machine/machine.h"
#include "tests/tsetlin/naive_patches.h"

namespace bitfed {

// The training rule written down as plainly as it reads: an int for every automaton, a loop over every
// patch, no bitmaps. Only the random bits come from the library, in the documented order: a stream for every
// sample, whose first draws seed eight lanes (for bits by the dozen) and one narrow generator.
class ReferenceMachine {
 public:
  ReferenceMachine(const MachineOptions& options, const PatchShape& shape, size_t class_count)
      : options_(options), shape_(shape), class_count_(class_count) {
    states.assign(class_count * options.clauses, std::vector<int>(shape.literals(), 127));
    weights.assign(class_count * options.clauses, 1);
  }

  std::vector<std::vector<int>> states;  // row class * clauses + clause, a column a literal
  std::vector<int> weights;

  bool includes(size_t row, size_t literal) const { return states[row][literal] >= 128; }

  void train_epoch(const BitImages& images, std::span<const uint16_t> labels, const RandomStream& random) {
    std::vector<uint32_t> order;
    for (uint32_t i = 0; i < labels.size(); ++i) order.push_back(i);
    RandomStream shuffling = random.substream(0);
    shuffling.shuffle(std::span<uint32_t>(order));
    for (size_t i = 0; i < order.size(); ++i) {
      seed(random.substream(i + 1));
      patches_ = naive_patches(images, order[i], shape_);
      const size_t label = labels[order[i]];
      if (options_.scheme == UpdateScheme::kOneVsAll) {
        for (size_t other = 0; other < class_count_; ++other) teach(other, other == label);
        continue;
      }
      teach(label, true);
      if (class_count_ == 1) continue;
      size_t other = below(class_count_ - 1);
      if (other >= label) ++other;
      teach(other, false);
    }
  }

 private:
  void seed(RandomStream stream) {
    for (int lane = 0; lane < 8; ++lane) {
      lanes_.s0[lane] = stream.next_u64();
      lanes_.s1[lane] = stream.next_u64() | 1;
    }
    narrow_ = stream.next_u64();
  }

  uint64_t narrow() {  // SplitMix64
    narrow_ += 0x9e3779b97f4a7c15u;
    uint64_t z = narrow_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  size_t below(size_t bound) { return static_cast<size_t>((narrow() >> 32) * bound >> 32); }

  // A flag for each of `count`, true with probability threshold / 2^bits.
  std::vector<bool> flags(unsigned threshold, int bits, size_t count) {
    const Kernels& plain = *supported_kernels().front();
    std::vector<uint64_t> words(words_for(count));
    (bits == 8 ? plain.bernoulli : plain.bernoulli16)(&lanes_, threshold, words.size(), words.data());
    std::vector<bool> result;
    for (size_t i = 0; i < count; ++i) result.push_back(get_bit(words.data(), i));
    return result;
  }

  // The patches in which all literals that the clause includes hold: all of them for an empty clause.
  std::vector<size_t> matching_patches(size_t row) const {
    std::vector<size_t> matching;
    for (size_t p = 0; p < patches_.size(); ++p) {
      if (naive_match(patches_[p], [&](size_t literal) { return includes(row, literal); }))
        matching.push_back(p);
    }
    return matching;
  }

  void teach(size_t label, bool positive) {
    const size_t first = label * options_.clauses;
    std::vector<std::vector<size_t>> matching;
    int64_t sum = 0;
    for (size_t clause = 0; clause < options_.clauses; ++clause) {
      matching.push_back(matching_patches(first + clause));
      if (!matching.back().empty())
        sum += clause % 2 == 0 ? weights[first + clause] : -weights[first + clause];
    }
    const double limit = options_.threshold;
    const double clamped = std::min(limit, std::max(-limit, static_cast<double>(sum)));
    const double probability = (positive ? limit - clamped : limit + clamped) / (2 * limit);
    const auto threshold = static_cast<unsigned>(std::floor(probability * 65536 + 0.5));
    if (threshold == 0) return;
    const std::vector<bool> chosen = flags(threshold, 16, options_.clauses);
    for (size_t clause = 0; clause < options_.clauses; ++clause) {
      if (!chosen[clause]) continue;
      const bool votes_for = clause % 2 == 0;
      if (votes_for == positive) {
        type_one(first + clause, matching[clause]);
      } else if (!matching[clause].empty()) {
        type_two(first + clause, matching[clause]);
      }
    }
  }

  const std::vector<bool>& one_of(const std::vector<size_t>& matching) {
    return patches_[shape_.is_flat() ? 0 : matching[below(matching.size())]];
  }

  void type_one(size_t row, const std::vector<size_t>& matching) {
    const double rate = 256 / options_.sensitivity;
    const double uniform = static_cast<double>(narrow() >> 11) / 9007199254740992.0;
    const unsigned threshold = static_cast<unsigned>(rate) + (uniform < rate - std::floor(rate) ? 1 : 0);
    if (matching.empty()) {
      const std::vector<bool> forgotten = flags(threshold, 8, shape_.literals());
      for (size_t literal = 0; literal < shape_.literals(); ++literal) {
        if (forgotten[literal]) move(row, literal, -1);
      }
      return;
    }
    const std::vector<bool>& patch = one_of(matching);
    const std::vector<bool> forgotten = flags(threshold, 8, shape_.literals());
    for (size_t literal = 0; literal < shape_.literals(); ++literal) {
      if (patch[literal]) {
        if (options_.boost || !forgotten[literal]) move(row, literal, +1);
      } else if (forgotten[literal]) {
        move(row, literal, -1);
      }
    }
    if (options_.weighted) ++weights[row];
  }

  void type_two(size_t row, const std::vector<size_t>& matching) {
    const std::vector<bool>& patch = one_of(matching);
    for (size_t literal = 0; literal < shape_.literals(); ++literal) {
      if (!patch[literal] && !includes(row, literal)) move(row, literal, +1);
    }
    if (options_.weighted) weights[row] = std::max(1, weights[row] - 1);
  }

  void move(size_t row, size_t literal, int by) {
    states[row][literal] = std::min(255, std::max(0, states[row][literal] + by));
  }

  MachineOptions options_;
  PatchShape shape_;
  size_t class_count_;
  RandomLanes lanes_;
  uint64_t narrow_ = 0;
  std::vector<std::vector<bool>> patches_;  // of the sample in hand
};

}  // namespace bitfed
