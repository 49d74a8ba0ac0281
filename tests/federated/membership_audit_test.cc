#include "bitfed/federated/privacy/membership_audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "bitfed/base/hash/random.h"

namespace bitfed {
namespace {

TEST(MembershipAuditTest, WithholdsAnotherHalfEachTime) {
  std::set<std::vector<uint32_t>> seen;
  for (uint32_t repeat = 0; repeat < 8; ++repeat) {
    const std::vector<uint32_t> withheld = withheld_clients(1, repeat, 31);
    EXPECT_EQ(withheld.size(), 15u);
    EXPECT_TRUE(std::is_sorted(withheld.begin(), withheld.end()));
    EXPECT_LT(withheld.back(), 31u);
    seen.insert(withheld);
  }
  EXPECT_EQ(seen.size(), 8u);
}

// Clients differ far more from each other than membership makes them differ: only the comparison with the
// other models finds it.
TEST(MembershipAuditTest, FindsMembersByComparison) {
  std::vector<AuditedModel> models(4);
  for (size_t m = 0; m < models.size(); ++m) {
    models[m].is_member.assign(20, true);
    for (const uint32_t client : withheld_clients(5, static_cast<uint32_t>(m), 20))
      models[m].is_member[client] = false;
    for (size_t c = 0; c < 20; ++c)
      models[m].fit.push_back(-static_cast<double>(c) + (models[m].is_member[c] ? 0.1 : 0));
  }
  const AttackResult attack = attack_membership(models);
  EXPECT_EQ(attack.guesses, 80u);
  EXPECT_GE(attack.right, 72u);
  EXPECT_GT(attack.low, 0.5);
  EXPECT_LE(attack.high, 1);
  EXPECT_LE(attack_membership({models[0]}).right, 16u);  // alone, mostly by luck
}

TEST(MembershipAuditTest, NoAdvantageWithoutADifference) {
  RandomStream random({2, "fit"});
  std::vector<AuditedModel> models(20);
  for (size_t m = 0; m < models.size(); ++m) {
    models[m].is_member.assign(50, true);
    for (const uint32_t client : withheld_clients(6, static_cast<uint32_t>(m), 50))
      models[m].is_member[client] = false;
    for (size_t c = 0; c < 50; ++c) models[m].fit.push_back(random.normal());
  }
  const AttackResult attack = attack_membership(models);
  EXPECT_LT(attack.low, 0);
  EXPECT_GT(attack.high, 0);
}

TEST(MembershipAuditTest, Bound) {
  EXPECT_EQ(advantage_bound(0, 0), 0);
  EXPECT_NEAR(advantage_bound(std::log(3), 0), 0.5, 1e-12);
  EXPECT_NEAR(advantage_bound(1, 1e-5), (std::exp(1.0) - 1 + 2e-5) / (std::exp(1.0) + 1), 1e-12);
  EXPECT_LE(advantage_bound(50, 0.1), 1);
}

}  // namespace
}  // namespace bitfed
