#include "bitfed/rpc/server/outbox.h"

#include <gtest/gtest.h>

namespace bitfed {
namespace {

v1::FromServer work(uint32_t round) {
  v1::FromServer head;
  head.mutable_work()->set_round(round);
  return head;
}

std::shared_ptr<const Bytes> bytes(size_t size) {
  return std::make_shared<const Bytes>(size, uint8_t{7});
}

TEST(Outbox, HeadThenChunks) {
  Outbox outbox;
  EXPECT_TRUE(outbox.push(work(1), bytes(200000)));
  EXPECT_EQ(outbox.next().work().round(), 1u);
  EXPECT_EQ(outbox.next().chunk().size(), size_t{128} << 10);
  EXPECT_EQ(outbox.next().chunk().size(), 200000 - (size_t{128} << 10));
  EXPECT_TRUE(outbox.empty());
}

// A client that never reads: the broadcast that it has begun to receive and the newest one are all that it
// holds.
TEST(Outbox, NewerWorkSupersedesWorkThatWaits) {
  Outbox outbox;
  std::vector<std::weak_ptr<const Bytes>> broadcasts;
  for (uint32_t round = 1; round <= 100; ++round) {
    const auto broadcast = bytes(1000000);
    broadcasts.push_back(broadcast);
    EXPECT_TRUE(outbox.push(work(round), broadcast));
    if (round == 1) outbox.next();  // begun, and stuck
  }
  const auto alive =
      std::count_if(broadcasts.begin(), broadcasts.end(), [](const auto& one) { return !one.expired(); });
  EXPECT_EQ(alive, 2);
  while (!outbox.empty()) {
    const v1::FromServer message = outbox.next();
    if (message.has_work()) {
      EXPECT_EQ(message.work().round(), 100u);
    }
  }
}

TEST(Outbox, MessagesAreBounded) {
  Outbox outbox;
  v1::FromServer verdict;
  verdict.mutable_verdict();
  for (size_t i = 0; i < Outbox::kMaxWaiting; ++i) EXPECT_TRUE(outbox.push(verdict, nullptr));
  EXPECT_FALSE(outbox.push(verdict, nullptr));
  outbox.next();
  EXPECT_TRUE(outbox.push(verdict, nullptr));
}

}  // namespace
}  // namespace bitfed
