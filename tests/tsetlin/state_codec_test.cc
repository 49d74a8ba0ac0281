#include "bitfed/tsetlin/state_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/hash/random.h"
#include "bitfed/tsetlin/clause_codec.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Automata random_automata(size_t clauses, size_t literals, uint64_t seed) {
  RandomStream random({seed, "automata"});
  Automata automata = untrained_automata(clauses, literals);
  for (uint8_t& state : automata.states) state = static_cast<uint8_t>(random.below(256));
  for (int32_t& weight : automata.weights) weight = 1 + static_cast<int32_t>(random.below(1000));
  return automata;
}

State coded(const Automata& automata) {
  State state;
  add_automata(automata, "0.states", &state);
  return state;
}

TEST(StateCodecTest, UntrainedAutomataAreAtTheBoundary) {
  const Automata automata = untrained_automata(2, 3);
  EXPECT_THAT(automata.states, ElementsAre(127, 127, 127, 127, 127, 127));
  EXPECT_THAT(automata.weights, ElementsAre(1, 1));
}

TEST(StateCodecTest, WholeStatesComeBack) {
  for (const size_t clauses : {1u, 2u, 7u}) {
    for (const size_t literals : {2u, 63u, 272u}) {
      Automata automata = random_automata(clauses, literals, clauses * literals);
      automata.weights[0] = kMaximumWeight;
      EXPECT_EQ(read_automata(clauses, literals, "0.states", coded(automata)), automata);
    }
  }
}

// 16 states are a level, and a level becomes its middle: no action changes.
TEST(StateCodecTest, LevelsComeBackAsTheirMiddle) {
  const Automata base{{0, 127, 128, 255, 7, 127}, {1, 1}};
  const Automata trained{{0, 128, 127, 255, 15, 16}, {3, 40}};
  State state;
  add_levels(trained, base, "0.states", &state);
  const Automata found = read_levels(base, "0.states", state);
  EXPECT_THAT(found.states, ElementsAre(8, 136, 120, 248, 8, 24));
  EXPECT_EQ(found.weights, trained.weights);
}

TEST(StateCodecTest, LevelsThatStayCostLittle) {
  const Automata base = random_automata(100, 272, 1);
  State state;
  add_levels(base, base, "0.states", &state);
  EXPECT_LT(state.tensor_bytes(), 100 * 272 / 64);
}

TEST(StateCodecTest, ChangedAndForeignBytesAreRefused) {
  const Automata automata = random_automata(4, 20, 2);
  const State state = coded(automata);
  const Bytes bytes = state.tensors().front().bytes;
  const auto refusal = [&](const Bytes& changed, size_t clauses, size_t literals) {
    State other;
    other.add("0.states", {changed.size()}, changed);
    return error_text([&] { read_automata(clauses, literals, "0.states", other); });
  };
  for (size_t i = 0; i < bytes.size(); ++i) {
    Bytes changed = bytes;
    changed[i] ^= 1;
    ASSERT_THAT(refusal(changed, 4, 20), HasSubstr("'0.states'"));
  }
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_NE(refusal(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)), 4, 20), "");
  EXPECT_THAT(refusal(bytes, 5, 16), HasSubstr("checksum"));
  EXPECT_EQ(refusal(bytes, 4, 20), "");
}

TEST(StateCodecTest, WeightsOutOfRangeAreRefused) {
  Automata automata = random_automata(2, 4, 3);
  automata.weights[1] = kMaximumWeight + 1;
  EXPECT_THAT(error_text([&] { read_automata(2, 4, "0.states", coded(automata)); }), HasSubstr("weights"));
}

}  // namespace
}  // namespace bitfed
