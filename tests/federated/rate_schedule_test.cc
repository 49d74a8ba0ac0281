#include "bitfed/federated/network/rate_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

RateSchedule schedule_of(const std::string& client, uint32_t rounds) {
  return read_rate_schedule(Config::parse("[client]\n" + client, "recipe.toml").section("client"), rounds);
}

TEST(RateSchedule, HalvesUnlessItSaysOtherwise) {
  for (const char* client : {"", "schedule = \"halve\"\n"}) {
    const RateSchedule schedule = schedule_of(client, 500);
    EXPECT_EQ(schedule.factor(199), 1);
    EXPECT_EQ(schedule.factor(200), 0.5);
    EXPECT_EQ(schedule.factor(249), 0.5);
    EXPECT_EQ(schedule.factor(500), 1.0 / 128);
  }
  const RateSchedule given = schedule_of("halve_from = 3\nhalve_every = 2\n", 9);
  EXPECT_EQ(given.factor(2), 1);
  EXPECT_EQ(given.factor(4), 0.5);
  EXPECT_EQ(given.factor(5), 0.25);
  EXPECT_EQ(schedule_of("", 8).halve_from, 2u);  // of 3.2: at most one round early
  EXPECT_EQ(schedule_of("", 14).halve_from, 4u);
}

TEST(RateSchedule, HalfACosineWave) {
  const RateSchedule schedule = schedule_of("schedule = \"cosine\"\n", 6);
  EXPECT_EQ(schedule.factor(1), 1);
  EXPECT_NEAR(schedule.factor(3), 0.75, 1e-7);  // cos 60 degrees = 1/2
  EXPECT_NEAR(schedule.factor(4), 0.5, 1e-7);
  EXPECT_NEAR(schedule.factor(5), 0.25, 1e-7);
  EXPECT_GT(schedule_of("schedule = \"cosine\"\n", 100000).factor(100000), 0);
}

TEST(RateSchedule, Steps) {
  const RateSchedule usual = schedule_of("schedule = \"step\"\n", 90);
  EXPECT_EQ(usual.factor(30), 1);
  EXPECT_DOUBLE_EQ(usual.factor(31), 0.1);
  EXPECT_DOUBLE_EQ(usual.factor(60), 0.1);
  EXPECT_DOUBLE_EQ(usual.factor(61), 0.01);
  const RateSchedule given = schedule_of("schedule = \"step\"\nstep_every = 2\nstep_factor = 0.5\n", 9);
  EXPECT_EQ(given.factor(2), 1);
  EXPECT_EQ(given.factor(3), 0.5);
  EXPECT_EQ(given.factor(9), 0.0625);
  EXPECT_GT(static_cast<float>(schedule_of("schedule = \"step\"\nstep_every = 1\n", 500).factor(500)), 0);
}

TEST(RateSchedule, Constant) {
  const RateSchedule schedule = schedule_of("schedule = \"constant\"\n", 500);
  EXPECT_EQ(schedule.factor(1), 1);
  EXPECT_EQ(schedule.factor(500), 1);
}

// The keys of a schedule that is not in use are unknown.
TEST(RateSchedule, ReadsItsOwnKeysAlone) {
  const Config recipe = Config::parse("[client]\nschedule = \"cosine\"\nhalve_from = 3\n", "recipe.toml");
  read_rate_schedule(recipe.section("client"), 10);
  EXPECT_THAT(error_text([&] { recipe.reject_unknown_keys(); }), HasSubstr("client.halve_from"));
  EXPECT_THAT(error_text([] { schedule_of("schedule = \"linear\"\n", 10); }),
              AllOf(HasSubstr("client.schedule"), HasSubstr("linear"), HasSubstr("cosine")));
}

}  // namespace
}  // namespace bitfed
