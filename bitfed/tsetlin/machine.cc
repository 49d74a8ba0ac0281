#include "bitfed/tsetlin/machine.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <numeric>
#include <utility>

namespace bitfed {
namespace {

// In the place of a clause's number of literals: the demands on its position contradict each other.
constexpr uint16_t kNowhere = UINT16_MAX;
constexpr uint8_t kInitialState = 127;               // excluded, on the edge
constexpr uint64_t kEvenBits = 0x5555555555555555u;  // of a word of clauses: those that vote for their class

// The kernels draw single bits with probability n / 256. `forget` is 256 / s; dithering between its two
// neighbours keeps the mean exact.
unsigned dithered_threshold(double forget, double uniform) {
  const double base = std::floor(forget);
  return static_cast<unsigned>(base) + (uniform < forget - base ? 1u : 0u);
}

}  // namespace

// The randomness of one sample: wide draws for the kernels, narrow ones for everything else.
struct TsetlinMachine::Draws {
  RandomLanes lanes;
  uint64_t narrow_state;

  explicit Draws(RandomStream stream) {
    for (int lane = 0; lane < 8; ++lane) {
      lanes.s0[lane] = stream.next_u64();
      lanes.s1[lane] = stream.next_u64() | 1;  // a generator must not be all zero
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
      states_(class_count * options.clauses * words_ * 64),
      actions_(class_count * options.clauses, shape.literals()),
      includes_(class_count * options.clauses * shape.literals()),
      include_count_(class_count * options.clauses),
      weights_(class_count * options.clauses, 1),
      image_(shape),
      position_masks_(class_count * options.clauses * image_.blocks() * kBlockWords),
      flat_image_(shape.is_flat() ? words_ : 0),
      matches_(options.clauses * image_.blocks() * kBlockWords),
      fired_(words_for(options.clauses)),
      chosen_(words_for(options.clauses)),
      literals_(words_),
      valid_(words_),
      up_(words_),
      down_(words_) {
  assert(shape.literals() < kNowhere);
  for (size_t row = 0; row < weights_.size(); ++row) {
    std::fill_n(states_.data() + row * words_ * 64, shape.literals(), kInitialState);
    list_includes(row);
  }
  for (size_t literal = 0; literal < shape.literals(); ++literal) set_bit(valid_.data(), literal);
}

void TsetlinMachine::restart_from(const BitMatrix& actions, std::span<const int32_t> weights) {
  assert(actions.rows() == actions_.rows() && actions.columns() == actions_.columns());
  for (size_t row = 0; row < weights_.size(); ++row) {
    for (size_t literal = 0; literal < shape_.literals(); ++literal) {
      states_[row * words_ * 64 + literal] = kInitialState + (actions.get(row, literal) ? 1 : 0);
    }
    std::copy_n(actions.row(row), words_, actions_.row(row));
    weights_[row] = std::max(1, weights[row]);
    list_includes(row);
  }
}

void TsetlinMachine::train_epoch(const BitImages& images, std::span<const uint16_t> labels,
                                 const RandomStream& random, const std::function<bool()>& stop) {
  assert(images.count == labels.size());
  std::vector<uint32_t> order(labels.size());
  std::iota(order.begin(), order.end(), 0u);
  // Data sorted by class would teach one class after the other and forget the first.
  RandomStream(random.substream(0)).shuffle(std::span<uint32_t>(order));

  for (size_t i = 0; i < order.size(); ++i) {
    if (stop && i % 64 == 0 && stop()) return;
    Draws draws(random.substream(i + 1));
    const size_t label = labels[order[i]];
    image_.load(images, order[i]);
    if (shape_.is_flat()) image_.patch(0, flat_image_.data());
    if (options_.scheme == UpdateScheme::kOneVsAll) {
      for (size_t other = 0; other < class_count_; ++other) teach(other, other == label, draws);
    } else {
      teach(label, true, draws);
      if (class_count_ > 1) {
        const size_t other = draws.below(class_count_ - 1);
        teach(other + (other >= label ? 1 : 0), false, draws);
      }
    }
  }
}

// Equation 1 of the FedTMOS paper: each clause of the class gets feedback with probability
// (T - sum) / 2T if the sample is of the class, (T + sum) / 2T if not.
void TsetlinMachine::teach(size_t label, bool positive, Draws& draws) {
  evaluate(label);
  const size_t first_row = label * options_.clauses;
  const int64_t limit = options_.threshold;
  const int64_t sum = std::clamp<int64_t>(votes(first_row), -limit, limit);
  const int64_t missing = positive ? limit - sum : limit + sum;
  const auto probability = static_cast<unsigned>((missing * 65536 + limit) / (2 * limit));
  if (probability == 0) return;
  kernels_->bernoulli16(&draws.lanes, probability, chosen_.size(), chosen_.data());

  // Type I feedback goes to the clauses that vote for what the sample is, type II to those that do not and
  // fired all the same.
  const uint64_t reinforced = positive ? kEvenBits : ~kEvenBits;
  for (size_t w = 0; w < chosen_.size(); ++w) {
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

// The weights of the clauses that fired: the even ones count for the class, the odd ones against.
int64_t TsetlinMachine::votes(size_t first_row) const {
  int64_t sum = 0;
  for (size_t w = 0; w < fired_.size(); ++w) {
    const int32_t* weights = weights_.data() + first_row + w * 64;
    for (uint64_t left = fired_[w] & kEvenBits; left != 0; left &= left - 1)
      sum += weights[std::countr_zero(left)];
    for (uint64_t left = fired_[w] & ~kEvenBits; left != 0; left &= left - 1)
      sum -= weights[std::countr_zero(left)];
  }
  return sum;
}

void TsetlinMachine::evaluate(size_t label) {
  const size_t match_words = image_.blocks() * kBlockWords;
  size_t row = label * options_.clauses;
  for (size_t first = 0; first < options_.clauses; first += 64) {
    uint64_t fired = 0;
    const size_t count = std::min<size_t>(64, options_.clauses - first);
    for (size_t i = 0; i < count; ++i, ++row) {
      fired |= uint64_t{matches(row, matches_.data() + (first + i) * match_words)} << i;
    }
    fired_[first / 64] = fired;
  }
}

// While training, an empty clause matches everywhere.
bool TsetlinMachine::matches(size_t row, uint64_t* match) {
  if (shape_.is_flat()) {
    const uint64_t* actions = actions_.row(row);
    for (size_t w = 0; w < words_; ++w) {
      if ((actions[w] & ~flat_image_[w]) != 0) return false;
    }
    return true;
  }
  if (include_count_[row] == kNowhere) return false;
  uint16_t* includes = includes_.data() + row * shape_.literals();
  size_t last = 0;
  if (kernels_->and_rows(image_.bitmaps(), image_.blocks(), includes, include_count_[row], position_mask(row),
                        match, &last)) {
    return true;
  }
  try_first(includes, last);
  return false;
}

// Reinforces a pattern that is there, forgets what is not: literals that hold in a matching patch move
// toward inclusion; the others, or all where nothing matches, toward exclusion at the rate 1 / s.
void TsetlinMachine::type_one(size_t row, const uint64_t* match, bool fired, Draws& draws) {
  const unsigned forget = dithered_threshold(256 / options_.sensitivity, draws.uniform());
  if (!fired) {
    std::fill(up_.begin(), up_.end(), uint64_t{0});
    kernels_->bernoulli(&draws.lanes, forget, words_, down_.data());
    step(row, up_.data(), down_.data());
    return;
  }
  load_patch(match, draws);
  kernels_->bernoulli(&draws.lanes, forget, words_, down_.data());
  for (size_t w = 0; w < words_; ++w) {
    up_[w] = options_.boost ? literals_[w] : literals_[w] & ~down_[w];
    down_[w] &= ~literals_[w];
  }
  step(row, up_.data(), down_.data());
  if (options_.weighted) ++weights_[row];
}

// Makes a clause that should not have fired more particular: excluded literals that fail in a matching
// patch move toward inclusion.
void TsetlinMachine::type_two(size_t row, const uint64_t* match, Draws& draws) {
  load_patch(match, draws);
  const uint64_t* actions = actions_.row(row);
  for (size_t w = 0; w < words_; ++w) {
    up_[w] = ~literals_[w] & ~actions[w] & valid_[w];
    down_[w] = 0;
  }
  step(row, up_.data(), down_.data());
  if (options_.weighted && weights_[row] > 1) --weights_[row];
}

// The literals of one of the patches that match, drawn uniformly.
void TsetlinMachine::load_patch(const uint64_t* match, Draws& draws) {
  if (shape_.is_flat()) {
    std::copy(flat_image_.begin(), flat_image_.end(), literals_.begin());
    return;
  }
  const size_t count = kernels_->count_bits(match, image_.blocks() * kBlockWords);
  image_.patch(select_bit(match, draws.below(count)), literals_.data());
}

void TsetlinMachine::step(size_t row, const uint64_t* up, const uint64_t* down) {
  if (kernels_->step_automata(states_.data() + row * words_ * 64, up, down, words_, actions_.row(row))) {
    list_includes(row);
  }
}

// Literals of the patch's position hold at the same patches in every image: a clause's are kept as one
// bitmap, the others as a list. More than half of the included literals tend to be of the first kind; of
// each thermometer only the strictest counts: the last of y > t, the first of its negations.
void TsetlinMachine::list_includes(size_t row) {
  if (shape_.is_flat()) return;
  constexpr size_t kNone = SIZE_MAX;
  const size_t y_end = shape_.positions_y() - 1;
  const size_t x_end = shape_.position_bits();
  const size_t features = shape_.features();
  std::array<size_t, 4> strictest = {kNone, kNone, kNone, kNone};
  uint16_t* next = includes_.data() + row * shape_.literals();
  const uint16_t* first = next;
  const uint64_t* actions = actions_.row(row);
  for (size_t w = 0; w < words_; ++w) {
    for (uint64_t left = actions[w]; left != 0; left &= left - 1) {
      const size_t literal = w * 64 + static_cast<size_t>(std::countr_zero(left));
      const bool negated = literal >= features;
      const size_t feature = negated ? literal - features : literal;
      if (feature >= x_end) {
        *next++ = static_cast<uint16_t>(literal);
      } else if (size_t& place = strictest[(feature < y_end ? 0 : 1) + (negated ? 2 : 0)];
                 !negated || place == kNone) {
        place = literal;
      }
    }
  }
  uint64_t* mask = position_mask(row);
  const size_t mask_words = image_.blocks() * kBlockWords;
  std::copy_n(image_.everywhere(), mask_words, mask);
  for (const size_t literal : strictest) {
    if (literal == kNone) continue;
    const uint64_t* holds = image_.bitmaps() + literal * mask_words;
    for (size_t i = 0; i < mask_words; ++i) mask[i] &= holds[i];
  }
  const bool nowhere = std::all_of(mask, mask + mask_words, [](uint64_t word) { return word == 0; });
  include_count_[row] = nowhere ? kNowhere : static_cast<uint16_t>(next - first);
}

}  // namespace bitfed
