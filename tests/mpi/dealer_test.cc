#include "bitfed/mpi/dealer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace bitfed {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DealerTest, TheLargestFirstThenByNumber) {
  Dealer dealer({{0, 5}, {1, 20}, {2, 5}, {3, 10}}, 4);
  EXPECT_THAT(dealer.deal(1), ElementsAre(1));
  EXPECT_THAT(dealer.deal(1), ElementsAre(3));
  EXPECT_THAT(dealer.deal(1), ElementsAre(0));
  EXPECT_FALSE(dealer.empty());
  EXPECT_THAT(dealer.deal(1), ElementsAre(2));
  EXPECT_TRUE(dealer.empty());
  EXPECT_THAT(dealer.deal(1), IsEmpty());
}

// 64 equal clients for two workers of one thread: shares of an eighth of what is left, rounded up.
TEST(DealerTest, SharesBecomeSmaller) {
  std::vector<Dealer::Client> clients;
  for (uint32_t i = 0; i < 64; ++i) clients.push_back({i, 10});
  Dealer dealer(clients, 2);
  EXPECT_EQ(dealer.deal(1).size(), 8u);
  EXPECT_EQ(dealer.deal(1).size(), 7u);
  EXPECT_EQ(dealer.deal(1).size(), 7u);
  size_t last = 0;
  while (!dealer.empty()) last = dealer.deal(1).size();
  EXPECT_EQ(last, 1u);
}

TEST(DealerTest, AWorkerWithMoreThreadsGetsMore) {
  std::vector<Dealer::Client> clients;
  for (uint32_t i = 0; i < 90; ++i) clients.push_back({i, 10});
  Dealer dealer(clients, 9);
  EXPECT_EQ(dealer.deal(8).size(), 20u);
  EXPECT_EQ(dealer.deal(1).size(), 2u);  // of 70, a ninth, a quarter: 1.94
}

TEST(DealerTest, EveryClientOnce) {
  std::vector<Dealer::Client> clients;
  for (uint32_t i = 0; i < 1000; ++i) clients.push_back({i, i * 7919 % 101});
  Dealer dealer(clients, 16);
  std::set<uint32_t> dealt;
  size_t count = 0;
  size_t messages = 0;
  while (!dealer.empty()) {
    for (const uint32_t client : dealer.deal(1)) {
      dealt.insert(client);
      ++count;
    }
    ++messages;
  }
  EXPECT_EQ(count, 1000u);
  EXPECT_EQ(dealt.size(), 1000u);
  EXPECT_LT(messages, 350u);
}

TEST(DealerTest, SmallClientsInSharesOfThatMany) {
  const std::vector<Dealer::Client> clients(100, {0, 5});
  Dealer dealer(clients, 4);
  std::vector<size_t> shares;
  while (!dealer.empty()) shares.push_back(dealer.deal(1, 20).size());
  EXPECT_THAT(shares, ElementsAre(20, 20, 20, 20, 20));
  // Never more than a worker's part.
  Dealer few({{0, 5}, {1, 5}, {2, 5}, {3, 5}, {4, 5}}, 2);
  EXPECT_THAT(few.deal(1, 1000), ElementsAre(0, 1));
  EXPECT_THAT(few.deal(1, 1000), ElementsAre(2, 3));
  EXPECT_THAT(few.deal(1, 1000), ElementsAre(4));
  Dealer one({{0, 5}}, 16);
  EXPECT_THAT(one.deal(1, 1000), ElementsAre(0));
}

TEST(DealerTest, NobodyToDeal) {
  Dealer dealer({}, 3);
  EXPECT_TRUE(dealer.empty());
  EXPECT_THAT(dealer.deal(1), IsEmpty());
}

}  // namespace
}  // namespace bitfed
