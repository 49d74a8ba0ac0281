#include "bitfed/tsetlin/machine/machine.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <utility>

namespace bitfed {
namespace {

// Of a word of clauses: the clauses that vote for their class.
constexpr uint64_t kEvenBits = 0x5555555555555555u;

// The index of the first `entry`, which must exist, in a list: one group at a time, in a register that every
// CPU has.
uint16_t* find_entry(uint16_t* list, uint16_t entry) {
  typedef uint16_t Group __attribute__((vector_size(16)));
  static_assert(sizeof(Group) == kLiteralGroup * sizeof(uint16_t));
  const Group wanted = Group{} + entry;
  for (;; list += kLiteralGroup) {
    Group group;
    std::memcpy(&group, list, sizeof(group));
    const auto equal = group == wanted;  // all bits set where entries are equal
    uint64_t halves[2];
    std::memcpy(halves, &equal, sizeof(halves));
    if (halves[0] != 0) return list + std::countr_zero(halves[0]) / 16;
    if (halves[1] != 0) return list + kLiteralGroup / 2 + std::countr_zero(halves[1]) / 16;
  }
}

// The capacity of a clause's list: all literals of the content, padded to whole groups. A flat machine has no
// lists.
size_t list_room(const PatchShape& shape) {
  if (shape.is_flat()) return 0;
  return (2 * shape.content_bits() + kLiteralGroup - 1) / kLiteralGroup * kLiteralGroup;
}

}  // namespace

// The random numbers of one sample: wide draws for the kernels, narrow draws for everything else.
struct TsetlinMachine::Draws {
  RandomLanes lanes;
  uint64_t narrow_state;

  explicit Draws(RandomStream stream) {
    for (int lane = 0; lane < 8; ++lane) {
      lanes.s0[lane] = stream.next_u64();
      lanes.s1[lane] = stream.next_u64() | 1;  // the state of a generator must not be all zero
    }
    narrow_state = stream.next_u64();
  }

  uint64_t narrow() {  // SplitMix64 (Steele, Lea and Flood, 2014)
    uint64_t z = narrow_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Uniform below a small bound; the bias is below bound / 2^32.
  size_t below(size_t bound) { return static_cast<size_t>((narrow() >> 32) * bound >> 32); }
  double uniform() { return static_cast<double>(narrow() >> 11) * 0x1p-53; }
};

TsetlinMachine::TsetlinMachine(const MachineOptions& options, const PatchShape& shape, size_t class_count)
    : kernels_(&kernels()),
      options_(options),
      shape_(shape),
      class_count_(class_count),
      words_(words_for(shape.literals())),
      forget_floor_(static_cast<unsigned>(256 / options.sensitivity)),
      forget_rest_(256 / options.sensitivity - forget_floor_),
      states_(class_count * options.clauses * words_ * 64),
      actions_(class_count * options.clauses, shape.literals()),
      votes_(class_count * options.clauses),
      image_(shape),
      list_starts_(votes_.size()),
      list_groups_(votes_.size()),
      list_counts_(votes_.size()),
      lists_(votes_.size() * list_room(shape)),
      position_masks_(votes_.size() * image_.blocks() * kBlockWords),
      flat_image_(shape.is_flat() ? words_ : 0),
      matches_(options.clauses * image_.blocks() * kBlockWords),
      fired_(words_for(options.clauses)),
      chosen_(words_for(options.clauses)),
      literals_(words_),
      valid_(words_),
      position_literals_(words_),
      none_(words_),
      up_(words_),
      down_(words_),
      changes_(words_) {
  assert(shape.literals() < UINT16_MAX && lists_.size() <= UINT32_MAX);
  for (size_t literal = 0; literal < shape.literals(); ++literal) {
    set_bit(valid_.data(), literal);
    if (shape.is_position(literal)) set_bit(position_literals_.data(), literal);
  }
  for (size_t row = 0; row < votes_.size(); ++row) {
    votes_[row] = sign(row);
    list_starts_[row] = static_cast<uint32_t>(row * list_room(shape));
    std::fill_n(states_.data() + row * words_ * 64, shape.literals(), kInitialState);
    list_actions(row);
  }
}

std::vector<int32_t> TsetlinMachine::weights() const {
  std::vector<int32_t> weights(votes_.size());
  std::transform(votes_.begin(), votes_.end(), weights.begin(), [](int32_t vote) { return std::abs(vote); });
  return weights;
}

void TsetlinMachine::restart_from(const BitMatrix& actions, std::span<const int32_t> weights) {
  assert(actions.rows() == actions_.rows() && actions.columns() == actions_.columns());
  for (size_t row = 0; row < votes_.size(); ++row) {
    for (size_t literal = 0; literal < shape_.literals(); ++literal) {
      states_[row * words_ * 64 + literal] = kInitialState + (actions.get(row, literal) ? 1 : 0);
    }
    std::copy_n(actions.row(row), words_, actions_.row(row));
    votes_[row] = sign(row) * std::max(1, weights[row]);
    list_actions(row);
  }
}

void TsetlinMachine::restart_from(std::span<const uint8_t> states, std::span<const int32_t> weights) {
  const size_t literals = shape_.literals();
  assert(states.size() == votes_.size() * literals && weights.size() == votes_.size());
  for (size_t row = 0; row < votes_.size(); ++row) {
    std::copy_n(states.data() + row * literals, literals, states_.data() + row * words_ * 64);
    std::fill_n(actions_.row(row), words_, uint64_t{0});
    for (size_t literal = 0; literal < literals; ++literal) {
      if (states[row * literals + literal] > kInitialState) set_bit(actions_.row(row), literal);
    }
    votes_[row] = sign(row) * std::max(1, weights[row]);
    list_actions(row);
  }
}

void TsetlinMachine::train_epoch(const BitImages& images, std::span<const uint16_t> labels,
                                 const RandomStream& random, const std::function<bool()>& stop) {
  assert(images.count == labels.size());
  std::vector<uint32_t> order(labels.size());
  std::iota(order.begin(), order.end(), 0u);
  // In data sorted by class the machine would learn one class at a time and forget the first. Substream 0 is
  // for the order, substream i + 1 for the i-th sample.
  RandomStream(random.substream(0)).shuffle(std::span<uint32_t>(order));

  for (size_t i = 0; i < order.size(); ++i) {
    if (stop && i % 64 == 0 && stop()) return;
    Draws draws(random.substream(i + 1));
    const size_t label = labels[order[i]];
    image_.load(images, order[i]);
    if (shape_.is_flat()) image_.patch(0, flat_image_.data());
    if (options_.scheme == UpdateScheme::kOneVsAll) {
      for (size_t other = 0; other < class_count_; ++other) update_class(other, other == label, draws);
    } else {
      update_class(label, true, draws);
      if (class_count_ > 1) {
        const size_t other = draws.below(class_count_ - 1);
        update_class(other + (other >= label ? 1 : 0), false, draws);
      }
    }
  }
}

// Equation 1 of the FedTMOS paper: each clause of the class gets feedback with probability
// (T - sum) / 2T if the sample is of the class, (T + sum) / 2T if not.
void TsetlinMachine::update_class(size_t label, bool positive, Draws& draws) {
  evaluate(label);
  const size_t first_row = label * options_.clauses;
  const int64_t limit = options_.threshold;
  const int64_t sum = std::clamp<int64_t>(
      kernels_->sum_chosen(votes_.data() + first_row, fired_.data(), options_.clauses), -limit, limit);
  const int64_t missing = positive ? limit - sum : limit + sum;
  const auto probability = static_cast<unsigned>((missing * 65536 + limit) / (2 * limit));  // in 1 / 65536
  if (probability == 0) return;
  kernels_->bernoulli16(&draws.lanes, probability, chosen_.size(), chosen_.data());

  // Type I feedback goes to the clauses that vote for the right answer (for the class if the sample is of the
  // class, else against it), type II to the other clauses if they fired.
  const uint64_t reinforced = positive ? kEvenBits : ~kEvenBits;
  for (size_t w = 0; w < chosen_.size(); ++w) {
    // The last word has random bits beyond the last clause.
    const uint64_t existing = w + 1 < chosen_.size() || options_.clauses % 64 == 0
                                  ? ~uint64_t{0}
                                  : (uint64_t{1} << options_.clauses % 64) - 1;
    for (uint64_t left = chosen_[w] & existing & (reinforced | fired_[w]); left != 0; left &= left - 1) {
      const uint64_t bit = left & -left;
      const size_t clause = w * 64 + static_cast<size_t>(std::countr_zero(left));
      const uint64_t* match = matches_.data() + clause * image_.blocks() * kBlockWords;
      if ((bit & reinforced) != 0) {
        type_one(first_row + clause, match, (bit & fired_[w]) != 0, draws);
      } else {
        type_two(first_row + clause, match, draws);
      }
    }
  }
}

// Sets fired_ and matches_ for a class. In training, an empty clause matches everywhere.
void TsetlinMachine::evaluate(size_t label) {
  const size_t row = label * options_.clauses;
  if (shape_.is_flat()) {
    evaluate_flat(row);
    return;
  }
  const ClauseSpan span = {
      options_.clauses, list_starts_.data() + row, list_groups_.data() + row,    lists_.data(),
      image_.filler(),  position_mask(row),        image_.blocks() * kBlockWords};
  kernels_->match_clauses(image_.bitmaps(), image_.blocks(), span, matches_.data(), fired_.data());
}

// A clause fires if the image has all its included literals.
void TsetlinMachine::evaluate_flat(size_t first_row) {
  std::fill(fired_.begin(), fired_.end(), uint64_t{0});
  for (size_t clause = 0; clause < options_.clauses; ++clause) {
    const uint64_t* actions = actions_.row(first_row + clause);
    uint64_t missing = 0;
    for (size_t w = 0; w < words_ && missing == 0; ++w) missing = actions[w] & ~flat_image_[w];
    if (missing == 0) set_bit(fired_.data(), clause);
  }
}

// Type I feedback reinforces a matching pattern and forgets the rest: literals that hold in a matching patch
// move toward inclusion; the others, or all where nothing matches, move toward exclusion at the rate 1 / s.
void TsetlinMachine::type_one(size_t row, const uint64_t* match, bool fired, Draws& draws) {
  const unsigned forget = forget_floor_ + (draws.uniform() < forget_rest_ ? 1u : 0u);
  if (!fired || exceeds_literals(row)) {
    kernels_->bernoulli(&draws.lanes, forget, words_, down_.data());
    step(row, none_.data(), down_.data());
    return;
  }
  load_patch(match, draws);
  kernels_->bernoulli(&draws.lanes, forget, words_, down_.data());
  // Without boost, a literal that holds is rewarded with probability 1 - 1 / s: where the same draw does not
  // forget.
  for (size_t w = 0; w < words_; ++w) {
    up_[w] = options_.boost ? literals_[w] : literals_[w] & ~down_[w];
    down_[w] &= ~literals_[w];
  }
  step(row, up_.data(), down_.data());
  if (options_.weighted) votes_[row] += sign(row);
}

bool TsetlinMachine::exceeds_literals(size_t row) const {
  return options_.max_literals > 0 && kernels_->count_bits(actions_.row(row), words_) > options_.max_literals;
}

// Type II feedback makes a clause that should not have fired more specific: excluded literals that are false
// in a matching patch move toward inclusion.
void TsetlinMachine::type_two(size_t row, const uint64_t* match, Draws& draws) {
  load_patch(match, draws);
  const uint64_t* actions = actions_.row(row);
  for (size_t w = 0; w < words_; ++w) up_[w] = ~literals_[w] & ~actions[w] & valid_[w];
  step(row, up_.data(), none_.data());
  if (options_.weighted && std::abs(votes_[row]) > 1) votes_[row] -= sign(row);
}

// Loads the literals of a matching patch, drawn uniformly.
void TsetlinMachine::load_patch(const uint64_t* match, Draws& draws) {
  if (shape_.is_flat()) {
    std::copy(flat_image_.begin(), flat_image_.end(), literals_.begin());
    return;
  }
  const size_t count = kernels_->count_bits(match, image_.blocks() * kBlockWords);
  image_.patch(kernels_->select_bit(match, draws.below(count)), literals_.data());
}

void TsetlinMachine::list_actions(size_t row) {
  if (shape_.is_flat()) return;
  image_.position_mask(actions_.row(row), position_mask(row));
  make_list(row);
}

void TsetlinMachine::step(size_t row, const uint64_t* up, const uint64_t* down) {
  const bool changed = kernels_->step_automata(states_.data() + row * words_ * 64, up, down, words_,
                                               actions_.row(row), changes_.data());
  if (changed && !shape_.is_flat()) update_list(row);
}

// Position literals hold at the same patches in every image: those of a clause are kept as one bitmap, its
// other literals as a list. More than half of the included literals tend to be position literals.
void TsetlinMachine::update_list(size_t row) {
  const uint64_t* actions = actions_.row(row);
  uint64_t moved = 0;
  for (size_t w = 0; w < words_; ++w) {
    moved |= changes_[w] & position_literals_[w];
    for (uint64_t left = changes_[w] & ~position_literals_[w]; left != 0; left &= left - 1) {
      const auto literal = static_cast<uint16_t>(w * 64 + static_cast<size_t>(std::countr_zero(left)));
      if ((actions[w] & left & -left) != 0) {
        include(row, literal);
      } else {
        exclude(row, literal);
      }
    }
  }
  if (moved != 0) image_.position_mask(actions, position_mask(row));
}

// The included literals of the content in ascending order, padded to whole groups, at least one.
void TsetlinMachine::make_list(size_t row) {
  uint16_t* list = lists_.data() + list_starts_[row];
  uint16_t* next = list;
  const uint64_t* actions = actions_.row(row);
  for (size_t w = 0; w < words_; ++w) {
    for (uint64_t left = actions[w] & ~position_literals_[w]; left != 0; left &= left - 1) {
      *next++ = static_cast<uint16_t>(w * 64 + static_cast<size_t>(std::countr_zero(left)));
    }
  }
  const auto count = static_cast<size_t>(next - list);
  const size_t groups = std::max<size_t>(1, (count + kLiteralGroup - 1) / kLiteralGroup);
  std::fill(next, list + groups * kLiteralGroup, image_.filler());
  list_counts_[row] = static_cast<uint16_t>(count);
  list_groups_[row] = static_cast<uint16_t>(groups);
}

// Appends the literal, with a new group if the last one is full. Keeps the order of the list, which matching
// has optimised.
void TsetlinMachine::include(size_t row, uint16_t literal) {
  uint16_t* end = lists_.data() + list_starts_[row] + list_counts_[row];
  if (list_counts_[row] == list_groups_[row] * kLiteralGroup) {
    std::fill_n(end, kLiteralGroup, image_.filler());
    ++list_groups_[row];
  }
  *end = literal;
  ++list_counts_[row];
}

// The last literal replaces the removed one; a group that becomes empty is dropped, except the first.
void TsetlinMachine::exclude(size_t row, uint16_t literal) {
  uint16_t* list = lists_.data() + list_starts_[row];
  const size_t last = --list_counts_[row];
  *find_entry(list, literal) = list[last];
  list[last] = image_.filler();
  if (last % kLiteralGroup == 0 && last > 0) --list_groups_[row];
}

}  // namespace bitfed
