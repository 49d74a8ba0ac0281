#include "bitfed/federated/privacy/update_grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const UpdateGrid kGrid{.bits = 4, .range = 2, .max_clients = 10, .max_weight = 100};
const SumParts kParts = {{SumKind::kChange, 2}, {SumKind::kVote, 1}, {SumKind::kPrecise, 1}};

TEST(UpdateGridTest, RoomForTheSumOfAllClients) {
  // 10 * 100 * 2 * 2^4 = 32000 of either sign: 16 bits. Votes: 1000 of either sign: 11 bits.
  EXPECT_EQ(kGrid.fields(kParts), (std::vector<ModularField>{{2, 16}, {1, 11}, {2, 62}, {1, 38}}));
}

TEST(UpdateGridTest, RoundsTheWeightedValue) {
  const ModularVector vector = to_grid(kGrid, {kParts, {0.99, -0.51, -1, 300000.25}, 3});
  // 3 * .99 * 16 = 47.52; 3 * -.51 * 16 = -24.48; a vote of weight 3; 3 * 300000, and 3 * 2^22; the weight.
  EXPECT_THAT(vector.values, ElementsAre(48, 65536 - 24, 2048 - 3, 900000, 3 << 22, 3));
}

TEST(UpdateGridTest, TheMeanOfTwoClients) {
  ModularVector sum = to_grid(kGrid, {kParts, {1, -2, -1, -70000.5}, 3});
  sum.add(to_grid(kGrid, {kParts, {-1, -2, 1, 10000}, 1}));
  const UpdateMean mean = from_grid(kGrid, kParts, sum, 2);
  EXPECT_THAT(mean.values, ElementsAre(0.5, -2, -0.5, (3 * -70000.5 + 10000) / 4));
  EXPECT_EQ(mean.weight, 4u);
  EXPECT_EQ(mean.clients, 2u);
}

// All clients at an end of the range: nothing wraps.
TEST(UpdateGridTest, TheLargestSumFits) {
  for (const double sign : {1.0, -1.0}) {
    const ModularVector one = to_grid(kGrid, {kParts, {2 * sign, 2 * sign, sign, 0x1p24 * sign}, 100});
    ModularVector sum = one;
    for (int i = 1; i < 10; ++i) sum.add(one);
    EXPECT_THAT(from_grid(kGrid, kParts, sum, 10).values,
                ElementsAre(2 * sign, 2 * sign, sign, 0x1p24 * sign));
  }
}

TEST(UpdateGridTest, ValuesBeyondTheRange) {
  const auto text = [](std::vector<double> values) {
    return error_text([&] { to_grid(kGrid, {kParts, std::move(values), 1}); }, Error::Kind::kFailure);
  };
  EXPECT_THAT(text({2.5, 0, 1, 0}),
              HasSubstr("changed by 2.5, expected within ±2: raise privacy.update_range"));
  EXPECT_THAT(text({0, 0, 1, 1e9}), HasSubstr("found a value of 1000000000, expected within ±16777216"));
  EXPECT_THAT(text({0, std::nan(""), 1, 0}), HasSubstr("changed by nan"));
}

// What a client in the clear may not send; behind a mask nobody can tell.
TEST(UpdateGridTest, ALiarInTheClear) {
  const ModularVector fine = to_grid(kGrid, {kParts, {2, -2, 1, -0x1p24}, 7});
  check_on_grid(kGrid, kParts, fine, "client 1");
  const auto text = [&](size_t index, uint64_t value) {
    ModularVector vector = fine;
    vector.values[index] = value;
    return error_text([&] { check_on_grid(kGrid, kParts, vector, "client 1"); });
  };
  EXPECT_THAT(text(5, 0), HasSubstr("client 1: found a weight of 0, expected 1 to 100"));
  EXPECT_THAT(text(5, 101), HasSubstr("found a weight of 101"));
  EXPECT_THAT(text(0, 2 * 16 * 7 + 1), HasSubstr("found an element of 225"));
  EXPECT_THAT(text(2, 8), HasSubstr("found an element of 8"));
  EXPECT_THAT(text(3, modular_mask(61)), HasSubstr("found an element"));
  EXPECT_THAT(text(4, modular_mask(61)), HasSubstr("found an element"));
}

TEST(UpdateGridTest, Messages) {
  const ModularVector vector = to_grid(kGrid, {kParts, {1, -2, -1, 3.5}, 3});
  EXPECT_EQ(read_sum_message(decode(encode(sum_message(vector)), "x")), vector);
  const auto text = [](const std::vector<uint32_t>& fields, const Bytes& elements) {
    State state("client 1");
    state.add("fields", {fields.size() / 2, 2}, fields);
    state.add("elements", {elements.size()}, elements);
    return error_text([&] { read_sum_message(state); });
  };
  EXPECT_EQ(text({1, 8}, {1}), "");
  EXPECT_THAT(text({1, 0}, {1}), HasSubstr("found 1 elements of 0 bits"));
  EXPECT_THAT(text({1, 63}, {1}), HasSubstr("found 1 elements of 63 bits"));
  EXPECT_THAT(text({~0u, 62, 3, 62}, {1}), HasSubstr("expected at most 2147483648"));
  EXPECT_THAT(text({1u << 31, 62}, {1}), HasSubstr("found 1 bytes, expected"));
  EXPECT_THAT(text({}, {1}), HasSubstr("found 0 fields"));
}

}  // namespace
}  // namespace bitfed
