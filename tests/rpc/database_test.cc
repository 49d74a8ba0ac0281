// Statements that are kept compiled: as good as new ones.

#include "bitfed/rpc/server/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;

constexpr const char* kInsert = "INSERT INTO numbers VALUES (?, ?)";
constexpr const char* kAbove = "SELECT number, note FROM numbers WHERE number > ? ORDER BY number";

class DatabaseTest : public testing::Test {
 protected:
  DatabaseTest() {
    for (int64_t number = 0; number < 5; ++number) database_.prepare(kInsert).bind(number).bind("note").run();
  }

  int64_t count() const {
    Statement row = database_.prepare("SELECT COUNT(*) FROM numbers");
    EXPECT_TRUE(row.step());
    return row.integer(0);
  }

  TemporaryFolder folder_;
  Database database_{folder_ / "d.sqlite", "a test",
                     "CREATE TABLE numbers (number INTEGER PRIMARY KEY, note TEXT)"};
};

// One text at every level of a recursion: none steps through another's rows.
TEST_F(DatabaseTest, TwoOfOneTextAtOnce) {
  const std::function<int(int64_t)> chains = [&](int64_t least) {
    int found = 1;
    Statement rows = database_.prepare(kAbove);
    rows.bind(least);
    while (rows.step()) found += chains(rows.integer(0));
    return found;
  };
  for (int i = 0; i < 2; ++i) EXPECT_EQ(chains(-1), 32);
}

// Neither values, nor rows, nor a failure of an earlier use.
TEST_F(DatabaseTest, NothingIsLeftOfAnEarlierUse) {
  database_.prepare(kInsert).bind(int64_t{7}).run();
  Statement last = database_.prepare(kAbove);
  EXPECT_FALSE(last.bind(int64_t{7}).step());
  {
    Statement row = database_.prepare(kAbove);
    row.bind(int64_t{6});
    ASSERT_TRUE(row.step());
    EXPECT_EQ(row.integer(0), 7);
    EXPECT_TRUE(row.is_null(1));
  }
  {
    Statement row = database_.prepare(kAbove);  // without a value: above NULL is nothing
    EXPECT_FALSE(row.step());
  }
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(error_text([&] { database_.prepare(kInsert).bind(int64_t{7}).bind("again").run(); }),
                HasSubstr("UNIQUE"));
  database_.prepare(kInsert).bind(int64_t{8}).bind("new").run();
  EXPECT_EQ(count(), 7);
}

// Also where the same pragmas have run before.
TEST_F(DatabaseTest, EveryUnsyncedTransactionIsUnsyncedAndNoOther) {
  const auto synchronous = [&] {
    Statement row = database_.prepare("PRAGMA synchronous");
    row.step();
    return row.integer(0);
  };
  for (int i = 0; i < 3; ++i) {
    database_.unsynced_transaction([&] { EXPECT_EQ(synchronous(), 1); });
    EXPECT_EQ(synchronous(), 2);
    EXPECT_THROW(database_.unsynced_transaction([] { throw std::runtime_error("no"); }), std::runtime_error);
    EXPECT_EQ(synchronous(), 2);
    database_.transaction([&] { EXPECT_EQ(synchronous(), 2); });
  }
}

// A transaction that fails is taken back, and the next one works.
TEST_F(DatabaseTest, TransactionsAfterAFailure) {
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_THROW(database_.transaction([&] {
      database_.prepare(kInsert).bind(100 + i).bind("lost").run();
      throw std::runtime_error("no");
    }),
                 std::runtime_error);
    database_.transaction([&] { database_.prepare(kInsert).bind(200 + i).bind("kept").run(); });
    EXPECT_EQ(count(), 6 + i);
  }
}

TEST_F(DatabaseTest, AnyThreadThatHoldsTheLock) {
  std::vector<std::thread> threads;
  for (int64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int64_t i = 0; i < 100; ++i) {
        const auto held = database_.lock();
        database_.prepare(kInsert).bind(1000 * (thread + 1) + i).bind("thread").run();
        Statement row = database_.prepare(kAbove);
        row.bind(1000 * (thread + 1) + i - 1);
        EXPECT_TRUE(row.step());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count(), 405);
}

}  // namespace
}  // namespace bitfed
