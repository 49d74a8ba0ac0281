#include "bitfed/base/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bitfed/base/pool_or_caller.h"

namespace bitfed {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class ThreadPoolTest : public testing::TestWithParam<unsigned> {};

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 16));

TEST_P(ThreadPoolTest, EveryIndexOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  for (const size_t count : {0, 1, 2, 15, 16, 17, 1000}) {
    std::vector<std::atomic<int>> calls(count);
    pool.for_each(count, [&](size_t i) { ++calls[i]; });
    for (const auto& call : calls) EXPECT_EQ(call, 1);
  }
}

TEST_P(ThreadPoolTest, RangesCoverWithoutOverlap) {
  ThreadPool pool(GetParam());
  for (const size_t count : {0, 1, 9, 10, 11, 100}) {
    for (const size_t grain : {1, 3, 10, 1000}) {
      std::vector<std::atomic<int>> calls(count);
      pool.for_ranges(count, grain, [&](size_t begin, size_t end) {
        EXPECT_LT(begin, end);
        EXPECT_LE(end - begin, grain);
        for (size_t i = begin; i < end; ++i) ++calls[i];
      });
      for (const auto& call : calls) EXPECT_EQ(call, 1);
    }
  }
}

TEST_P(ThreadPoolTest, ExceptionArrivesAndThePoolLivesOn) {
  ThreadPool pool(GetParam());
  for (int attempt = 0; attempt < 20; ++attempt) {
    std::atomic<int> calls = 0;
    const auto body = [&](size_t i) {
      ++calls;
      if (i == 5) throw std::runtime_error("five");
      // Else the others could do all the rest before the thrower is scheduled again.
      if (i >= 1000) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    EXPECT_THROW(pool.for_each(100000, body), std::runtime_error);
    EXPECT_LT(calls, 100000);  // the rest is not started
  }
  std::atomic<int> calls = 0;
  pool.for_each(100, [&](size_t) { ++calls; });
  EXPECT_EQ(calls, 100);
}

TEST(ThreadPool, AllThrowingIsOneException) {
  ThreadPool pool(4);
  EXPECT_THROW(pool.for_each(100, [](size_t i) { throw i; }), size_t);
}

// A pool within a task of another pool: how a client that trains on its own thread evaluates.
TEST(ThreadPool, OnePoolWithinAnother) {
  ThreadPool outer(3);
  std::atomic<size_t> sum = 0;
  outer.for_each(8, [&](size_t i) {
    ThreadPool inner(static_cast<unsigned>(1 + i % 3));
    inner.for_each(10, [&](size_t j) { sum += 10 * i + j; });
  });
  EXPECT_EQ(sum, 80u * 79 / 2);
}

// Were a task to wait for other tasks, a pool whose threads all did would never end.
TEST(ThreadPool, WithinATaskOfThePoolTheTaskRunsAll) {
  for (const unsigned threads : {1u, 3u}) {
    ThreadPool pool(threads);
    std::atomic<size_t> elsewhere = 0;
    std::vector<size_t> sums(8);
    pool.for_each(8, [&](size_t i) {
      const auto self = std::this_thread::get_id();
      pool.for_each(10, [&](size_t j) {
        sums[i] += j;
        elsewhere += std::this_thread::get_id() != self ? 1 : 0;
      });
    });
    EXPECT_THAT(sums, Each(45u));
    EXPECT_EQ(elsewhere, 0u);
  }
}

TEST(ThreadPool, WithoutAPoolTheCallerRunsAll) {
  std::vector<size_t> order;
  for_each(nullptr, 3, [&](size_t i) { order.push_back(i); });
  for_ranges(nullptr, 7, 2, [&](size_t begin, size_t end) { order.push_back(end - begin); });
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 7));
}

TEST(ThreadPool, SeveralCallersShareOnePool) {
  ThreadPool pool(2);
  std::atomic<int> calls = 0;
  std::vector<std::future<void>> callers;
  for (int i = 0; i < 4; ++i) {
    callers.push_back(std::async(std::launch::async, [&] { pool.for_each(500, [&](size_t) { ++calls; }); }));
  }
  for (auto& caller : callers) caller.get();
  EXPECT_EQ(calls, 2000);
}

TEST(ThreadPool, TasksRunInTheOrderSubmitted) {
  std::vector<int> order;
  std::promise<void> done;
  ThreadPool pool(1);
  for (int i = 0; i < 100; ++i) pool.submit([&order, i] { order.push_back(i); });
  pool.submit([&] { done.set_value(); });
  done.get_future().wait();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(ThreadPool, EndFinishesTheRunningTaskAndDropsTheRest) {
  std::atomic<bool> finished = false;
  std::atomic<int> dropped_ran = 0;
  std::promise<void> started;
  {
    ThreadPool pool(1);
    pool.submit([&] {
      started.set_value();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      finished = true;
    });
    pool.submit([&] { ++dropped_ran; });
    started.get_future().wait();
  }
  EXPECT_TRUE(finished);
  EXPECT_EQ(dropped_ran, 0);
}

TEST(ThreadPool, ZeroMeansOnePerProcessor) {
  EXPECT_GE(processor_count(), 1u);
  EXPECT_EQ(ThreadPool().size(), processor_count());
}

}  // namespace
}  // namespace bitfed
