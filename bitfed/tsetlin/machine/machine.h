#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bitfed/base/hash/random.h"
#include "bitfed/bits/bit_matrix.h"
#include "bitfed/bits/kernels.h"
#include "bitfed/tsetlin/machine/patches.h"

namespace bitfed {

enum class UpdateScheme {
  kOneVsAll,        // a sample updates its own class and every other class
  kOneVsOneRandom,  // a sample updates its own class and one other, drawn at random
};

struct MachineOptions {
  size_t clauses = 100;    // per class; even clauses vote for it, odd ones against
  int32_t threshold = 50;  // T: the target of the class sums
  double sensitivity = 5;  // s: 1 / s is the rate of forgetting
  UpdateScheme scheme = UpdateScheme::kOneVsAll;
  bool weighted = true;     // integer weights that start at 1 and never fall below
  bool boost = true;        // reward true positives always, not with probability (s - 1) / s
  size_t max_literals = 0;  // a clause that includes more is not rewarded, it forgets; 0: no limit
};

// A multi-class Tsetlin machine in training, flat or convolutional (Granmo 2018; Granmo et al. 2019; weights:
// Phoulady et al. 2020). Each clause has an automaton per literal, a byte that starts at 127 and includes its
// literal from 128 on. The result depends only on the options, the data and the random stream, and has the
// same bits on every instruction set.
class TsetlinMachine {
 public:
  static constexpr uint8_t kInitialState = 127;  // excluded, at the boundary

  TsetlinMachine(const MachineOptions& options, const PatchShape& shape, size_t class_count);

  // Continues from the actions and weights of another machine: included literals start at 128, the others at
  // 127.
  void restart_from(const BitMatrix& actions, std::span<const int32_t> weights);

  // Continues from the automata of another machine: a state per literal of each row, in sequence.
  void restart_from(std::span<const uint8_t> states, std::span<const int32_t> weights);

  // One pass over the samples in an order drawn from `random`, which must be a stream for this epoch only.
  // `stop` is called periodically; true ends the epoch early.
  void train_epoch(const BitImages& images, std::span<const uint16_t> labels, const RandomStream& random,
                   const std::function<bool()>& stop = {});

  const MachineOptions& options() const { return options_; }
  const PatchShape& shape() const { return shape_; }
  size_t class_count() const { return class_count_; }

  // Row class * clauses + clause, a column per literal.
  const BitMatrix& actions() const { return actions_; }
  std::vector<int32_t> weights() const;  // per row; positive
  const std::vector<int32_t>& votes() const {
    return votes_;
  }  // per row; negative where the clause votes against
  std::span<const uint8_t> states(size_t row) const {
    return {states_.data() + row * words_ * 64, shape_.literals()};
  }

 private:
  struct Draws;

  void update_class(size_t label, bool positive, Draws& draws);
  void evaluate(size_t label);
  void evaluate_flat(size_t first_row);
  void type_one(size_t row, const uint64_t* match, bool fired, Draws& draws);
  void type_two(size_t row, const uint64_t* match, Draws& draws);
  bool exceeds_literals(size_t row) const;
  void load_patch(const uint64_t* match, Draws& draws);
  void step(size_t row, const uint64_t* up, const uint64_t* down);
  void list_actions(size_t row);
  void update_list(size_t row);
  void make_list(size_t row);
  void include(size_t row, uint16_t literal);
  void exclude(size_t row, uint16_t literal);
  int32_t sign(size_t row) const { return row % options_.clauses % 2 == 0 ? 1 : -1; }
  uint64_t* position_mask(size_t row) { return position_masks_.data() + row * image_.blocks() * kBlockWords; }

  const Kernels* kernels_;
  MachineOptions options_;
  PatchShape shape_;
  size_t class_count_;
  size_t words_;  // of masks over the literals

  // The kernels draw bits with probability n / 256, but automata must forget with probability 1 / s.
  // Dithering between the two integers next to 256 / s keeps the mean exact.
  unsigned forget_floor_;
  double forget_rest_;

  AlignedVector<uint8_t> states_;  // 64 * words_ automata per row; the padding stays 0
  BitMatrix actions_;              // the automata's top bits
  std::vector<int32_t> votes_;     // per row: the weight, negative where the clause votes against

  // Convolutional: the same actions in the form that matches fastest.
  PatchLiterals image_;  // the current sample
  std::vector<uint32_t> list_starts_;
  std::vector<uint16_t> list_groups_;
  std::vector<uint16_t> list_counts_;       // of literals, without fillers
  std::vector<uint16_t> lists_;             // the included literals of the content (see ClauseSpan)
  AlignedVector<uint64_t> position_masks_;  // per row: the patches that the clause's position literals allow

  std::vector<uint64_t> flat_image_;         // flat: the image's literals
  AlignedVector<uint64_t> matches_;          // of the current class, per clause: the matching patches
  std::vector<uint64_t> fired_;              // of the current class, a bit per clause
  std::vector<uint64_t> chosen_;             // of the current class, a bit per clause
  std::vector<uint64_t> literals_;           // of the current patch
  std::vector<uint64_t> valid_;              // ones for the literals, zeros for the padding
  std::vector<uint64_t> position_literals_;  // ones for the literals of a patch's position
  std::vector<uint64_t> none_;               // zeros
  std::vector<uint64_t> up_;
  std::vector<uint64_t> down_;
  std::vector<uint64_t> changes_;  // of the current row: the actions that flipped
};

}  // namespace bitfed
