#include "bitfed/bits/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "bitfed/base/error.h"
#include "bitfed/base/random.h"
#include "bitfed/bits/bit_matrix.h"

namespace bitfed {
namespace {

constexpr size_t kAwkwardSizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127};
constexpr unsigned kThresholds[] = {0, 1, 2, 127, 128, 129, 254, 255, 256};
constexpr unsigned kThresholds16[] = {0, 1, 2, 255, 256, 257, 32767, 32768, 32769, 65534, 65535, 65536};
constexpr uint64_t kGuard = 0x0123456789abcdefu;  // must survive behind the last word
constexpr uint64_t kAllOnes = ~uint64_t{0};

RandomStream stream(uint64_t number) {
  return RandomStream({.seed = number, .purpose = "kernels test"});
}

AlignedVector<uint64_t> random_words(RandomStream* random, size_t count) {
  AlignedVector<uint64_t> words(count);
  for (uint64_t& word : words) word = random->next_u64();
  return words;
}

RandomLanes random_lanes(uint64_t number) {
  RandomStream random = stream(number);
  RandomLanes lanes;
  for (uint64_t& word : lanes.s0) word = random.next_u64();
  for (uint64_t& word : lanes.s1) word = random.next_u64();
  return lanes;
}

bool same(const RandomLanes& a, const RandomLanes& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

// Every unit that this CPU runs, the plain one included, against the plain one.
class KernelsTest : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& tested() const { return *GetParam(); }
  const Kernels& plain() const { return *supported_kernels().front(); }
};

INSTANTIATE_TEST_SUITE_P(AllUnits, KernelsTest, testing::ValuesIn(supported_kernels()),
                         [](const auto& unit) { return std::string(unit.param->name); });

TEST_P(KernelsTest, CountsBits) {
  RandomStream random = stream(1);
  for (const size_t words : kAwkwardSizes) {
    for (const size_t offset : {0, 1, 3}) {  // the words need not begin at a block
      const auto a = random_words(&random, offset + words);
      const AlignedVector<uint64_t> full(offset + words, kAllOnes);
      EXPECT_EQ(tested().count_bits(a.data() + offset, words), plain().count_bits(a.data() + offset, words));
      EXPECT_EQ(tested().count_bits(full.data() + offset, words), 64 * words);
    }
  }
}

TEST_P(KernelsTest, CountsDifferingBits) {
  RandomStream random = stream(2);
  for (const size_t words : kAwkwardSizes) {
    for (const size_t offset : {0, 1, 3}) {
      const auto a = random_words(&random, offset + words);
      const auto b = random_words(&random, words);
      EXPECT_EQ(tested().differing_bits(a.data() + offset, b.data(), words),
                plain().differing_bits(a.data() + offset, b.data(), words));
      EXPECT_EQ(tested().differing_bits(b.data(), b.data(), words), 0u);
      AlignedVector<uint64_t> inverse = b;
      for (uint64_t& word : inverse) word = ~word;
      EXPECT_EQ(tested().differing_bits(b.data(), inverse.data(), words), 64 * words);
    }
  }
}

struct AndResult {
  bool any;
  size_t last = 999;
  AlignedVector<uint64_t> out;
  // Units that look at several rows at a time may find out later than the plain one, never earlier.
  bool agrees_with(const AndResult& expected, size_t count) const {
    return any == expected.any && (any ? out == expected.out : last >= expected.last && last < count);
  }
};

AndResult and_rows(const Kernels& table, const AlignedVector<uint64_t>& rows, size_t blocks,
                   const std::vector<uint16_t>& index, const AlignedVector<uint64_t>& first) {
  AndResult result;
  result.out.assign(8 * blocks + 1, kGuard);
  result.any = table.and_rows(rows.data(), blocks, index.data(), index.size(), first.data(),
                              result.out.data(), &result.last);
  EXPECT_EQ(result.out.back(), kGuard);
  return result;
}

// Rows in which `density` of 16 bits are set, so that results run out early, late or never.
AlignedVector<uint64_t> dense_words(RandomStream* random, size_t count, uint32_t density) {
  AlignedVector<uint64_t> words(count);
  for (size_t bit = 0; bit < 64 * count; ++bit) {
    if (random->below(16) < density) set_bit(words.data(), bit);
  }
  return words;
}

TEST_P(KernelsTest, AndsRows) {
  constexpr uint32_t kRows = 40;
  RandomStream random = stream(3);
  size_t ran_out = 0;
  size_t survived = 0;
  for (const size_t blocks : {1, 2, 3, 4, 7}) {
    for (const uint32_t density : {0, 8, 12, 15, 16}) {
      const auto rows = dense_words(&random, kRows * 8 * blocks, density);
      const auto first = dense_words(&random, 8 * blocks, 15);
      for (const size_t count : kAwkwardSizes) {
        std::vector<uint16_t> index(count);
        for (uint16_t& row : index) row = static_cast<uint16_t>(random.below(kRows));
        const AndResult expected = and_rows(plain(), rows, blocks, index, first);
        EXPECT_TRUE(and_rows(tested(), rows, blocks, index, first).agrees_with(expected, count))
            << blocks << " blocks, density " << density << ", " << count << " rows";
        ++(expected.any ? survived : ran_out);
      }
    }
  }
  EXPECT_GT(ran_out, 50u);
  EXPECT_GT(survived, 50u);
}

TEST_P(KernelsTest, AndOfNoRowsIsTheFirst) {
  for (const size_t blocks : {1, 2, 3}) {
    const AlignedVector<uint64_t> full(8 * blocks, kAllOnes);
    AlignedVector<uint64_t> first(8 * blocks);
    first.back() = 5;
    AndResult result = and_rows(tested(), full, blocks, {}, first);
    result.out.pop_back();
    EXPECT_TRUE(result.any);
    EXPECT_EQ(result.out, first);
  }
}

// The last word of the last block alone must keep a result alive.
TEST_P(KernelsTest, AndSeesEveryWord) {
  for (const size_t blocks : {1, 2, 3}) {
    for (size_t bit = 0; bit < 512 * blocks; bit += 31) {
      AlignedVector<uint64_t> rows(16 * blocks, kAllOnes);
      std::fill_n(rows.begin(), 8 * blocks, 0);
      set_bit(rows.data(), bit);
      const AlignedVector<uint64_t> first(8 * blocks, kAllOnes);
      const AndResult result = and_rows(tested(), rows, blocks, {1, 0, 1}, first);
      EXPECT_TRUE(result.any);
      EXPECT_EQ(plain().count_bits(result.out.data(), 8 * blocks), 1u);
      EXPECT_TRUE(get_bit(result.out.data(), bit));
      rows[bit / 64] = 0;
      EXPECT_FALSE(and_rows(tested(), rows, blocks, {1, 0, 1}, first).any);
    }
  }
}

using Bernoulli = void (*Kernels::*)(RandomLanes*, unsigned, size_t, uint64_t*);

void expect_same_draws(const Kernels& tested, const Kernels& plain, Bernoulli kernel, unsigned threshold) {
  for (const size_t words : kAwkwardSizes) {
    RandomLanes lanes = random_lanes(threshold + words);
    RandomLanes expected_lanes = lanes;
    std::vector<uint64_t> out(words + 1, kGuard);
    std::vector<uint64_t> expected(words + 1, kGuard);
    (tested.*kernel)(&lanes, threshold, words, out.data());
    (plain.*kernel)(&expected_lanes, threshold, words, expected.data());
    EXPECT_EQ(out, expected) << "threshold " << threshold << ", " << words << " words";
    EXPECT_TRUE(same(lanes, expected_lanes)) << "threshold " << threshold << ", " << words << " words";
  }
}

TEST_P(KernelsTest, DrawsBernoulli) {
  for (const unsigned threshold : kThresholds) {
    expect_same_draws(tested(), plain(), &Kernels::bernoulli, threshold);
  }
}

TEST_P(KernelsTest, DrawsBernoulli16) {
  for (const unsigned threshold : kThresholds16) {
    expect_same_draws(tested(), plain(), &Kernels::bernoulli16, threshold);
  }
}

struct Automata {
  AlignedVector<uint8_t> states;
  AlignedVector<uint64_t> actions;

  explicit Automata(size_t words) : states(64 * words), actions(words) {}
  bool step(const Kernels& table, const uint64_t* up, const uint64_t* down) {
    return table.step_automata(states.data(), up, down, actions.size(), actions.data());
  }
  bool operator==(const Automata&) const = default;
};

TEST_P(KernelsTest, StepsAutomata) {
  RandomStream random = stream(4);
  for (const size_t words : kAwkwardSizes) {
    Automata tested_automata(words);
    for (uint8_t& state : tested_automata.states) {
      const uint8_t edges[] = {0, 1, 126, 127, 128, 129, 254, 255};
      state = random.below(2) == 0 ? edges[random.below(8)] : static_cast<uint8_t>(random.below(256));
    }
    Automata plain_automata = tested_automata;
    for (int step = 0; step < 20; ++step) {
      const auto up = random_words(&random, words);
      const auto down = random_words(&random, words);
      const bool changed = tested_automata.step(tested(), up.data(), down.data());
      EXPECT_EQ(changed, plain_automata.step(plain(), up.data(), down.data()));
      EXPECT_EQ(tested_automata, plain_automata) << words << " words, step " << step;
    }
  }
}

TEST_P(KernelsTest, AutomataStayWithinTheirRange) {
  for (const size_t words : {1, 3}) {
    const AlignedVector<uint64_t> all(words, kAllOnes);
    const AlignedVector<uint64_t> none(words);
    Automata automata(words);
    EXPECT_FALSE(automata.step(tested(), none.data(), all.data()));
    EXPECT_THAT(automata.states, testing::Each(0));
    for (int state = 1; state <= 300; ++state) {
      EXPECT_EQ(automata.step(tested(), all.data(), none.data()), state == 128);
      EXPECT_THAT(automata.states, testing::Each(std::min(state, 255)));
      EXPECT_THAT(automata.actions, testing::Each(state >= 128 ? kAllOnes : 0));
    }
    // Up comes first: at the upper end, up and down together are one step down.
    EXPECT_FALSE(automata.step(tested(), all.data(), all.data()));
    EXPECT_THAT(automata.states, testing::Each(254));
  }
}

TEST_P(KernelsTest, EachMaskBitMovesItsOwnAutomaton) {
  for (size_t bit = 0; bit < 128; ++bit) {
    AlignedVector<uint64_t> one_bit(2);
    set_bit(one_bit.data(), bit);
    const AlignedVector<uint64_t> none(2);
    Automata automata(2);
    automata.states.assign(128, 127);
    EXPECT_TRUE(automata.step(tested(), one_bit.data(), none.data()));
    EXPECT_EQ(automata.actions, one_bit);
    EXPECT_EQ(automata.states[bit], 128);
    EXPECT_TRUE(automata.step(tested(), none.data(), one_bit.data()));
    EXPECT_EQ(automata.states, AlignedVector<uint8_t>(128, 127));
  }
}

TEST(PlainKernels, CountByHand) {
  const Kernels& plain = *supported_kernels().front();
  const uint64_t a[] = {0, 1, 0xff, kAllOnes};
  const uint64_t b[] = {kAllOnes, 3, 0x0f, kAllOnes};
  EXPECT_STREQ(plain.name, "scalar");
  EXPECT_EQ(plain.count_bits(a, 4), 0u + 1 + 8 + 64);
  EXPECT_EQ(plain.differing_bits(a, b, 4), 64u + 1 + 4 + 0);
}

TEST(PlainKernels, AndByHand) {
  const Kernels& plain = *supported_kernels().front();
  AlignedVector<uint64_t> rows(24);
  const AlignedVector<uint64_t> first(8, 0xff);
  rows[0] = 0x0f;   // row 0
  rows[8] = 0x3c;   // row 1
  rows[16] = 0xf0;  // row 2
  const AndResult both = and_rows(plain, rows, 1, {0, 1}, first);
  EXPECT_TRUE(both.any);
  EXPECT_THAT(both.out, testing::ElementsAre(0x0c, 0, 0, 0, 0, 0, 0, 0, kGuard));
  const AndResult nothing = and_rows(plain, rows, 1, {1, 0, 2, 1}, first);
  EXPECT_FALSE(nothing.any);
  EXPECT_EQ(nothing.last, 2u);
}

// The bytes of one draw, recovered from the comparisons: a byte is the number of thresholds it reaches.
std::vector<uint64_t> recover_draws(const Kernels& table, const RandomLanes& start, size_t draws) {
  std::vector<uint64_t> lanes(8 * draws);
  for (unsigned threshold = 1; threshold <= 255; ++threshold) {
    RandomLanes random = start;
    std::vector<uint64_t> less(draws);
    table.bernoulli(&random, threshold, draws, less.data());
    for (size_t bit = 0; bit < 64 * draws; ++bit) {
      if (!get_bit(less.data(), bit)) lanes[bit / 8] += uint64_t{1} << (bit % 8 * 8);
    }
  }
  return lanes;
}

// The first outputs of Blackman and Vigna's xoroshiro128plusplus.c (2019) from the state {1, 2}.
TEST_P(KernelsTest, LanesAreXoroshiro128PlusPlus) {
  RandomLanes start;
  for (uint64_t& word : start.s0) word = 1;
  for (uint64_t& word : start.s1) word = 2;
  const uint64_t expected[] = {393217u,
                               669327710093319u,
                               1732421326133921491u,
                               11394790081659126983u,
                               9555452776773192676u,
                               3586421180005889563u,
                               1691397964866707553u,
                               10735626796753111697u,
                               15216282715349408991u,
                               14247243556711267923u};
  const std::vector<uint64_t> draws = recover_draws(tested(), start, 10);
  for (size_t draw = 0; draw < 10; ++draw) {
    for (size_t lane = 0; lane < 8; ++lane) EXPECT_EQ(draws[8 * draw + lane], expected[draw]);
  }
}

// Each lane is a generator of its own: eight different states give what each alone would.
TEST_P(KernelsTest, LanesDoNotMix) {
  const RandomLanes start = random_lanes(5);
  const std::vector<uint64_t> together = recover_draws(tested(), start, 3);
  for (size_t lane = 0; lane < 8; ++lane) {
    RandomLanes alone;
    std::fill_n(alone.s0, 8, start.s0[lane]);
    std::fill_n(alone.s1, 8, start.s1[lane]);
    const std::vector<uint64_t> draws = recover_draws(tested(), alone, 3);
    for (size_t draw = 0; draw < 3; ++draw) EXPECT_EQ(draws[8 * draw], together[8 * draw + lane]);
  }
}

void expect_frequency(Bernoulli kernel, unsigned threshold, double range) {
  constexpr size_t kWords = 4096;
  const Kernels& plain = *supported_kernels().front();
  RandomLanes lanes = random_lanes(threshold);
  std::vector<uint64_t> out(kWords);
  (plain.*kernel)(&lanes, threshold, kWords, out.data());
  const double trials = 64.0 * kWords;
  const double p = threshold / range;
  const double found = static_cast<double>(plain.count_bits(out.data(), kWords));
  EXPECT_LE(std::abs(found - trials * p), 5 * std::sqrt(trials * p * (1 - p))) << "threshold " << threshold;
}

TEST(PlainKernels, FrequenciesWithinFiveSigma) {
  for (const unsigned threshold : kThresholds) expect_frequency(&Kernels::bernoulli, threshold, 256);
  for (const unsigned threshold : kThresholds16) expect_frequency(&Kernels::bernoulli16, threshold, 65536);
}

TEST(KernelsChoice, ForcesEverySupportedUnit) {
  const std::string before = kernels().name;
  for (const Kernels* table : supported_kernels()) {
    force_kernels(table->name);
    EXPECT_EQ(&kernels(), table);
  }
  force_kernels(before);
}

TEST(KernelsChoice, UnknownNameIsAnInputErrorAndChangesNothing) {
  const Kernels* before = &kernels();
  try {
    force_kernels("avx3");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kInput);
    EXPECT_THAT(error.what(), testing::HasSubstr("'avx3'"));
  }
  EXPECT_EQ(&kernels(), before);
}

// What a fresh process does with the environment variable: prints the table or the error, and exits.
[[noreturn]] void choose_from_environment(const char* name) {
  setenv("BITFED_ISA", name, 1);
  try {
    std::cerr << "chosen: " << kernels().name << std::endl;
    std::_Exit(0);
  } catch (const Error& error) {
    std::cerr << error.what() << std::endl;
    std::_Exit(error.kind() == Error::Kind::kInput ? 2 : 1);
  }
}

// The choice is made once in a process, so each case gets its own.
TEST(KernelsDeathTest, EnvironmentVariableChooses) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(choose_from_environment("scalar"), testing::ExitedWithCode(0), "chosen: scalar");
  const std::string best = supported_kernels().back()->name;
  EXPECT_EXIT(choose_from_environment(best.c_str()), testing::ExitedWithCode(0), "chosen: " + best);
  EXPECT_EXIT(choose_from_environment(""), testing::ExitedWithCode(0), "chosen: " + best);
}

TEST(KernelsDeathTest, UnknownEnvironmentVariableIsAnInputError) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(choose_from_environment("scaler"), testing::ExitedWithCode(2),
              "BITFED_ISA.*'scaler'.*did you mean 'scalar'");
  EXPECT_EXIT(choose_from_environment("riscv"), testing::ExitedWithCode(2), "BITFED_ISA.*'riscv'.*");
}

}  // namespace
}  // namespace bitfed
