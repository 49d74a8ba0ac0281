#include "bitfed/federated/read_ahead.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

namespace bitfed {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Bytes bytes_of(uint32_t key) {
  return Bytes(100, static_cast<uint8_t>(key));
}

std::vector<uint32_t> up_to(uint32_t count) {
  std::vector<uint32_t> keys(count);
  std::iota(keys.begin(), keys.end(), 0u);
  return keys;
}

// What it has not come to yet, the caller reads.
Bytes take(ReadAhead& ahead, uint32_t key) {
  Bytes bytes = ahead.take(key);
  return bytes.empty() ? bytes_of(key) : bytes;
}

TEST(ReadAheadTest, InAnyOrderAndByManyThreads) {
  ReadAhead ahead(bytes_of, 1000);
  for (int round = 0; round < 20; ++round) {
    ahead.want(up_to(200));
    std::atomic<uint32_t> wrong = 0;
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (uint32_t i = t; i < 200; i += 4) {
          const uint32_t key = t < 2 ? i : 200 - 1 - (i - t) - (3 - t);  // some from the end
          if (take(ahead, key) != bytes_of(key)) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0u);
  }
}

TEST(ReadAheadTest, InOrderAndNoFurtherThanItMay) {
  std::mutex mutex;
  std::vector<uint32_t> read;
  const auto so_far = [&] {
    const std::lock_guard lock(mutex);
    return read;
  };
  const auto wait_for = [&](size_t count) {
    while (so_far().size() < count) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it reads no more
    return so_far();
  };
  ReadAhead ahead(
      [&](uint32_t key) {
        const std::lock_guard lock(mutex);
        read.push_back(key);
        return bytes_of(key);
      },
      250);
  ahead.want({7, 5, 9, 4, 8, 6});
  EXPECT_THAT(wait_for(3), ElementsAre(7, 5, 9));
  EXPECT_THAT(ahead.take(6), IsEmpty());  // not read, and not read later
  EXPECT_EQ(ahead.take(5), bytes_of(5));
  EXPECT_THAT(wait_for(4), ElementsAre(7, 5, 9, 4));
  ahead.want({1});
  EXPECT_THAT(wait_for(5), ElementsAre(7, 5, 9, 4, 1));
  EXPECT_THAT(ahead.take(7), IsEmpty());  // forgotten
  EXPECT_EQ(ahead.take(1), bytes_of(1));
}

TEST(ReadAheadTest, WhatCannotBeReadIsLeftToTheCaller) {
  ReadAhead ahead([](uint32_t key) { return key == 3 ? Bytes() : bytes_of(key); }, 1000);
  ahead.want({3, 4});
  EXPECT_THAT(ahead.take(3), IsEmpty());
  EXPECT_EQ(take(ahead, 4), bytes_of(4));
}

}  // namespace
}  // namespace bitfed
