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
#include "bitfed/base/hash/random.h"
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

// Rows in which `density` of 16 bits are set, so that results run out early, late or never.
AlignedVector<uint64_t> dense_words(RandomStream* random, size_t count, uint32_t density) {
  AlignedVector<uint64_t> words(count);
  for (size_t bit = 0; bit < 64 * count; ++bit) {
    if (random->below(16) < density) set_bit(words.data(), bit);
  }
  return words;
}

// Clauses with their lists, ready for a kernel.
struct Clauses {
  std::vector<uint32_t> first;
  std::vector<uint16_t> groups;
  std::vector<uint16_t> literals;
  uint16_t filler;
  AlignedVector<uint64_t> masks;
  size_t mask_stride = 0;

  explicit Clauses(uint16_t row_of_ones) : filler(row_of_ones) {}

  void add(std::vector<uint16_t> list) {
    list.resize(std::max<size_t>(1, (list.size() + kLiteralGroup - 1) / kLiteralGroup) * kLiteralGroup,
                filler);
    first.push_back(static_cast<uint32_t>(literals.size()));
    groups.push_back(static_cast<uint16_t>(list.size() / kLiteralGroup));
    literals.insert(literals.end(), list.begin(), list.end());
  }
  ClauseSpan span() {
    return {first.size(), first.data(), groups.data(), literals.data(), filler, masks.data(), mask_stride};
  }
};

// The definition: which bits are left of a clause's mask.
std::vector<uint64_t> naive_match(const AlignedVector<uint64_t>& bitmaps, size_t blocks,
                                  const Clauses& clauses, size_t clause) {
  std::vector<uint64_t> match(8 * blocks);
  for (size_t w = 0; w < match.size(); ++w) {
    match[w] = clauses.masks[clause * clauses.mask_stride + w];
    for (size_t i = 0; i < clauses.groups[clause] * kLiteralGroup; ++i) {
      match[w] &= bitmaps[clauses.literals[clauses.first[clause] + i] * match.size() + w];
    }
  }
  return match;
}

// Returns how many fired.
size_t expect_matches(const Kernels& table, const AlignedVector<uint64_t>& bitmaps, size_t blocks,
                      Clauses clauses) {
  const size_t count = clauses.first.size();
  AlignedVector<uint64_t> matches(count * 8 * blocks + 1, kGuard);
  std::vector<uint64_t> fired(words_for(count) + 1, kGuard);
  const std::vector<uint16_t> before = clauses.literals;
  size_t fired_count = 0;
  for (int time = 0; time < 3; ++time) {  // each time from the order that the last one left
    table.match_clauses(bitmaps.data(), blocks, clauses.span(), matches.data(), fired.data());
    fired_count = 0;
    for (size_t clause = 0; clause < 64 * words_for(count); ++clause) {
      const bool found = get_bit(fired.data(), clause);
      if (clause >= count) {
        EXPECT_FALSE(found) << "behind the last clause";
        continue;
      }
      const std::vector<uint64_t> expected = naive_match(bitmaps, blocks, clauses, clause);
      const bool any = std::any_of(expected.begin(), expected.end(), [](uint64_t word) { return word != 0; });
      EXPECT_EQ(found, any) << blocks << " blocks, clause " << clause << " of " << count << ", time " << time;
      const auto match = matches.begin() + static_cast<std::ptrdiff_t>(clause * 8 * blocks);
      EXPECT_TRUE(!any || std::equal(expected.begin(), expected.end(), match)) << "clause " << clause;
      fired_count += any ? 1 : 0;
    }
    EXPECT_EQ(matches.back(), kGuard);
    EXPECT_EQ(fired.back(), kGuard);
  }
  for (size_t clause = 0; clause < count; ++clause) {
    const auto begin = before.begin() + clauses.first[clause];
    const auto end = begin + clauses.groups[clause] * static_cast<std::ptrdiff_t>(kLiteralGroup);
    const auto now = clauses.literals.begin() + clauses.first[clause];
    EXPECT_TRUE(std::is_permutation(begin, end, now)) << "clause " << clause;
    const bool same_fillers = std::equal(begin, end, now, [&clauses](uint16_t a, uint16_t b) {
      return (a == clauses.filler) == (b == clauses.filler);
    });
    EXPECT_TRUE(same_fillers) << "clause " << clause;
  }
  return fired_count;
}

TEST_P(KernelsTest, MatchesClauses) {
  constexpr uint16_t kRows = 40;
  RandomStream random = stream(3);
  size_t fired = 0;
  size_t all = 0;
  for (const size_t blocks : {1, 2, 3, 4, 7}) {
    for (const uint32_t density : {0, 8, 12, 15, 16}) {
      AlignedVector<uint64_t> bitmaps = dense_words(&random, kRows * 8 * blocks, density);
      bitmaps.resize((kRows + 1) * 8 * blocks, kAllOnes);
      for (const size_t count : {1, 2, 63, 64, 65, 129, 300}) {
        Clauses clauses(kRows);
        clauses.mask_stride = random.below(4) == 0 ? 0 : 8 * blocks;
        clauses.masks = dense_words(&random, count * 8 * blocks, 15);
        for (size_t clause = 0; clause < count; ++clause) {
          std::vector<uint16_t> list(random.below(5 * kLiteralGroup));
          for (uint16_t& literal : list) literal = static_cast<uint16_t>(random.below(kRows));
          clauses.add(list);
        }
        fired += expect_matches(tested(), bitmaps, blocks, clauses);
        all += count;
      }
    }
  }
  EXPECT_GT(fired, all / 5);
  EXPECT_LT(fired, all * 4 / 5);
}

TEST_P(KernelsTest, NoClausesAreNoWork) {
  Clauses none(0);
  tested().match_clauses(nullptr, 1, none.span(), nullptr, nullptr);
}

// A single bit, anywhere, must keep a clause alive to the last group; without it the clause dies.
TEST_P(KernelsTest, MatchSeesEveryWord) {
  for (const size_t blocks : {1, 2, 3}) {
    for (size_t bit = 0; bit < 512 * blocks; bit += 31) {
      AlignedVector<uint64_t> bitmaps(24 * blocks, kAllOnes);
      std::fill_n(bitmaps.begin(), 8 * blocks, 0);
      set_bit(bitmaps.data(), bit);
      Clauses clauses(2);
      clauses.masks.assign(8 * blocks, kAllOnes);
      std::vector<uint16_t> list(3 * kLiteralGroup, 1);
      list[kLiteralGroup] = 0;
      clauses.add(list);
      EXPECT_EQ(expect_matches(tested(), bitmaps, blocks, clauses), 1u);
      bitmaps[bit / 64] = 0;
      EXPECT_EQ(expect_matches(tested(), bitmaps, blocks, clauses), 0u);
    }
  }
}

// What rules a clause out is in the first group the next time; a clause that fires stays as it is.
TEST_P(KernelsTest, MatchPutsTheCulpritsInFront) {
  AlignedVector<uint64_t> bitmaps(24, kAllOnes);  // row 1 holds everywhere, row 2 is the filler
  std::fill_n(bitmaps.begin(), 8, 0);
  Clauses clauses(2);
  clauses.masks.assign(8, kAllOnes);
  std::vector<uint16_t> list(2 * kLiteralGroup + 4, 1);
  clauses.add(list);
  const std::vector<uint16_t> fires = clauses.literals;
  list.back() = 0;
  clauses.add(list);
  AlignedVector<uint64_t> matches(16);
  uint64_t fired = 0;
  tested().match_clauses(bitmaps.data(), 1, clauses.span(), matches.data(), &fired);
  EXPECT_EQ(fired, 1u);
  const auto second = clauses.literals.begin() + static_cast<std::ptrdiff_t>(fires.size());
  EXPECT_TRUE(std::equal(clauses.literals.begin(), second, fires.begin()));
  EXPECT_EQ(std::count(second, second + kLiteralGroup, 0), 1);
  EXPECT_EQ(std::count(second, clauses.literals.end(), 1), 2 * kLiteralGroup + 3);
  EXPECT_EQ(std::count(clauses.literals.end() - 4, clauses.literals.end(), 2), 4);
}

TEST_P(KernelsTest, SquaredDistances) {
  RandomStream random = stream(10);
  for (const size_t count : kAwkwardSizes) {
    std::vector<double> a(count);
    std::vector<double> b(count);
    double about = 0;
    for (size_t i = 0; i < count; ++i) {
      a[i] = random.uniform() * 1000;
      b[i] = random.uniform() * 1000;
      about += (a[i] - b[i]) * (a[i] - b[i]);
    }
    const double found = tested().squared_distance(a.data(), b.data(), count);
    EXPECT_NEAR(found, about, 1e-9 * about);
    EXPECT_EQ(found, plain().squared_distance(a.data(), b.data(), count));  // to the last bit
  }
  const double a[] = {1, 2, 3};
  const double b[] = {4, 6, 3};
  EXPECT_EQ(tested().squared_distance(a, b, 3), 9 + 16);
}

TEST_P(KernelsTest, SelectsBits) {
  RandomStream random = stream(6);
  auto words = random_words(&random, 6);
  words[1] = 0;
  words[2] = kAllOnes;
  words[4] = uint64_t{1} << 63;
  size_t rank = 0;
  for (size_t bit = 0; bit < 64 * words.size(); ++bit) {
    if (!get_bit(words.data(), bit)) continue;
    EXPECT_EQ(tested().select_bit(words.data(), rank++), bit);
  }
  EXPECT_GT(rank, 65u);
}

TEST_P(KernelsTest, SumsChosenValues) {
  RandomStream random = stream(7);
  for (const size_t count : kAwkwardSizes) {
    std::vector<int32_t> values(count);
    for (int32_t& value : values) value = static_cast<int32_t>(random.next_u64());
    std::vector<uint64_t> chosen(words_for(count) + 1);
    int64_t expected = 0;
    for (size_t i = 0; i < count; ++i) {
      if (random.below(2) == 0) continue;
      set_bit(chosen.data(), i);
      expected += values[i];
    }
    EXPECT_EQ(tested().sum_chosen(values.data(), chosen.data(), count), expected) << count;
  }
  const std::vector<int32_t> largest(1000, INT32_MIN);
  const std::vector<uint64_t> all(16, kAllOnes);
  EXPECT_EQ(tested().sum_chosen(largest.data(), all.data(), 1000), 1000 * int64_t{INT32_MIN});
}

TEST_P(KernelsTest, AddsToChosenSums) {
  RandomStream random = stream(8);
  for (const size_t blocks : {1, 2}) {
    AlignedVector<int64_t> sums(512 * blocks + 1);
    for (int64_t& sum : sums) sum = static_cast<int64_t>(random.next_u64() >> 2);
    AlignedVector<int64_t> expected = sums;
    for (const int64_t value : {int64_t{5}, int64_t{-7}, int64_t{INT32_MAX} * 3}) {
      auto chosen = random_words(&random, 8 * blocks);
      chosen[3] = 0;
      tested().add_chosen(value, chosen.data(), blocks, sums.data());
      for (size_t i = 0; i < 512 * blocks; ++i) expected[i] += get_bit(chosen.data(), i) ? value : 0;
      EXPECT_EQ(sums, expected);
    }
  }
}

TEST_P(KernelsTest, SplitsWindows) {
  RandomStream random = stream(9);
  for (const size_t blocks : {1, 2, 3}) {
    const auto strip = random_words(&random, 24 * blocks + 8);
    const auto valid = random_words(&random, 8 * blocks);
    for (size_t from = 0; from < 512 * blocks; from += from < 140 ? 1 : 29) {
      AlignedVector<uint64_t> holds(8 * blocks + 1, kGuard);
      AlignedVector<uint64_t> fails(8 * blocks + 1, kGuard);
      tested().split_window(strip.data(), from, valid.data(), blocks, holds.data(), fails.data());
      size_t wrong = 0;
      for (size_t i = 0; i < 512 * blocks; ++i) {
        const bool bit = get_bit(strip.data(), from + i);
        const bool within = get_bit(valid.data(), i);
        wrong += get_bit(holds.data(), i) != (within && bit) ? 1 : 0;
        wrong += get_bit(fails.data(), i) != (within && !bit) ? 1 : 0;
      }
      EXPECT_EQ(wrong, 0u) << blocks << " blocks from " << from;
      EXPECT_EQ(holds.back(), kGuard);
      EXPECT_EQ(fails.back(), kGuard);
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
  AlignedVector<uint64_t> changes;

  explicit Automata(size_t words) : states(64 * words), actions(words), changes(words) {}
  bool step(const Kernels& table, const uint64_t* up, const uint64_t* down) {
    return table.step_automata(states.data(), up, down, actions.size(), actions.data(), changes.data());
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
    EXPECT_EQ(automata.changes, one_bit);
    EXPECT_EQ(automata.states[bit], 128);
    EXPECT_FALSE(automata.step(tested(), one_bit.data(), none.data()));
    EXPECT_EQ(automata.changes, none);
    automata.step(tested(), none.data(), one_bit.data());
    EXPECT_TRUE(automata.step(tested(), none.data(), one_bit.data()));
    EXPECT_EQ(automata.changes, one_bit);
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

TEST(PlainKernels, MatchByHand) {
  const Kernels& plain = *supported_kernels().front();
  AlignedVector<uint64_t> bitmaps(32);
  bitmaps[0] = 0x0f;   // row 0
  bitmaps[8] = 0x3c;   // row 1
  bitmaps[16] = 0xf0;  // row 2
  bitmaps[24] = 0xff;  // row 3, the filler
  Clauses clauses(3);
  clauses.masks.assign(8, 0xff);
  clauses.add({0, 1});
  clauses.add({1, 0, 2, 1});
  clauses.add({});
  AlignedVector<uint64_t> matches(24);
  uint64_t fired = 0;
  plain.match_clauses(bitmaps.data(), 1, clauses.span(), matches.data(), &fired);
  EXPECT_EQ(fired, 0b101u);
  EXPECT_EQ(matches[0], 0x0cu);
  EXPECT_EQ(matches[16], 0xffu);
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
