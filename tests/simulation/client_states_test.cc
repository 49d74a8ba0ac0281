#include "bitfed/simulation/client_states.h"

#include <gtest/gtest.h>

#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

TEST(ClientStatesTest, ComeBackAsOfTheRoundThatIsAskedFor) {
  const TemporaryFolder folder;
  {
    ClientStates states(folder.path(), 3);
    EXPECT_TRUE(states.of(0).empty());
    states.put(0, {1, 1});
    states.put(2, {2});
    states.save(1);
    states.put(0, {3});
    states.save(4);
    states.put(2, {9});
    states.save(5);
  }
  ClientStates as_of_5(folder.path(), 3);
  as_of_5.restore(5);
  EXPECT_EQ(as_of_5.of(0), Bytes({3}));
  EXPECT_TRUE(as_of_5.of(1).empty());
  EXPECT_EQ(as_of_5.of(2), Bytes({9}));
  // The server's own checkpoint may be one behind: what came after it has not happened.
  ClientStates as_of_4(folder.path(), 3);
  as_of_4.restore(4);
  EXPECT_EQ(as_of_4.of(0), Bytes({3}));
  EXPECT_EQ(as_of_4.of(2), Bytes({2}));
  ClientStates again(folder.path(), 3);
  again.restore(5);
  EXPECT_EQ(again.of(2), Bytes({2}));
}

TEST(ClientStatesTest, FilesThatNobodyNeedsGo) {
  const TemporaryFolder folder;
  ClientStates states(folder.path(), 2);
  for (uint32_t round = 1; round <= 20; ++round) {
    states.put(0, {static_cast<uint8_t>(round)});
    if (round == 1) states.put(1, {77});
    states.save(round);
  }
  // Client 1's, client 0's, and the one that the checkpoint before this one needs.
  EXPECT_EQ(folder.entries(), 3u);
  ClientStates restored(folder.path(), 2);
  restored.restore(20);
  EXPECT_EQ(restored.of(0), Bytes({20}));
  EXPECT_EQ(restored.of(1), Bytes({77}));
}

TEST(ClientStatesTest, NothingKeptWritesNothing) {
  const TemporaryFolder folder;
  ClientStates states(folder.path(), 2);
  states.save(1);
  EXPECT_EQ(folder.entries(), 0u);
}

}  // namespace
}  // namespace bitfed
