#include "bitfed/federated/client_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "bitfed/model/state.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Durable on return.
std::vector<uint32_t> save(uint32_t round, ClientStates* states) {
  std::vector<uint32_t> needed = states->save(round);
  states->write_saved();
  return needed;
}

TEST(ClientStatesTest, ComeBackAsOfTheRoundThatIsAskedFor) {
  const TemporaryFolder folder;
  {
    ClientStates states(folder.path(), 3);
    EXPECT_TRUE(states.of(0).empty());
    states.put(0, {1, 1});
    states.put(2, {2});
    EXPECT_THAT(save(1, &states), ElementsAre(1));
    states.put(0, {3});
    EXPECT_THAT(save(4, &states), ElementsAre(1, 4));
    states.put(2, {9});
    EXPECT_THAT(save(5, &states), ElementsAre(4, 5));
  }
  ClientStates as_of_5(folder.path(), 3);
  as_of_5.restore(5, {4, 5});
  EXPECT_EQ(as_of_5.of(0), Bytes({3}));
  EXPECT_TRUE(as_of_5.of(1).empty());
  EXPECT_EQ(as_of_5.of(2), Bytes({9}));
  // The server's own checkpoint may be one behind: what came after it has not happened.
  ClientStates as_of_4(folder.path(), 3);
  as_of_4.restore(4, {1, 4});
  EXPECT_EQ(as_of_4.of(0), Bytes({3}));
  EXPECT_EQ(as_of_4.of(2), Bytes({2}));
  ClientStates again(folder.path(), 3);
  again.restore(5, {1, 4});
  EXPECT_EQ(again.of(2), Bytes({2}));
}

// Of 100,000 clients most do not take part in a round: what they keep stays on disk.
TEST(ClientStatesTest, MemoryHoldsWhatIsNotSavedYet) {
  const TemporaryFolder folder;
  ClientStates states(folder.path(), 3);
  states.put(0, {1, 2, 3});
  states.put(2, {4, 5});
  EXPECT_EQ(states.in_memory(), 2u);
  save(1, &states);
  EXPECT_EQ(states.in_memory(), 0u);
  states.put(2, {6});
  EXPECT_EQ(states.in_memory(), 1u);
  EXPECT_EQ(states.of(0), Bytes({1, 2, 3}));
  EXPECT_EQ(states.of(2), Bytes({6}));
  const std::vector<uint32_t> needed = save(2, &states);
  ClientStates restored(folder.path(), 3);
  restored.restore(2, needed);
  EXPECT_EQ(restored.in_memory(), 0u);
  EXPECT_EQ(restored.of(0), Bytes({1, 2, 3}));
  EXPECT_EQ(restored.of(2), Bytes({6}));
}

// More than one call to the system can write.
TEST(ClientStatesTest, OfManyClientsComeBack) {
  constexpr uint32_t kClients = 2500;
  const TemporaryFolder folder;
  ClientStates states(folder.path(), kClients);
  const auto kept = [](uint32_t client) { return Bytes(client % 7, static_cast<uint8_t>(client)); };
  for (uint32_t client = 0; client < kClients; ++client) states.put(client, kept(client));
  const std::vector<uint32_t> needed = save(1, &states);
  ClientStates restored(folder.path(), kClients);
  restored.restore(1, needed);
  for (uint32_t client = 0; client < kClients; ++client) {
    EXPECT_EQ(states.of(client), kept(client));
    EXPECT_EQ(restored.of(client), kept(client));
  }
}

// While one thread writes what was saved, others go on.
TEST(ClientStatesTest, AreReadAndChangedWhileTheyAreWritten) {
  const TemporaryFolder folder;
  ClientStates states(folder.path(), 3);
  states.put(0, {1, 2, 3});
  states.put(2, {4, 5});
  EXPECT_THAT(states.save(1), ElementsAre(1));
  states.put(2, {6});
  EXPECT_EQ(states.of(0), Bytes({1, 2, 3}));
  EXPECT_EQ(states.of(2), Bytes({6}));
  EXPECT_EQ(states.in_memory(), 3u);
  std::thread writer([&] { states.write_saved(); });
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(states.of(0), Bytes({1, 2, 3}));
    states.put(2, {7});
  }
  writer.join();
  EXPECT_EQ(states.in_memory(), 1u);
  EXPECT_EQ(states.of(0), Bytes({1, 2, 3}));
  EXPECT_EQ(states.of(2), Bytes({7}));
  ClientStates as_of_1(folder.path(), 3);
  as_of_1.restore(1, {1});
  EXPECT_EQ(as_of_1.of(0), Bytes({1, 2, 3}));
  EXPECT_EQ(as_of_1.of(2), Bytes({4, 5}));
}

TEST(ClientStatesTest, AFileThatIsCutShortIsMissed) {
  const TemporaryFolder folder;
  ClientStates states(folder.path(), 1);
  states.put(0, {1, 2, 3});
  save(1, &states);
  const std::filesystem::path file = folder / "round-00001.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_EQ(error_text([&] { states.of(0); }, Error::Kind::kFailure),
            file.string() + ": what a client kept cannot be read from it any more");
}

TEST(ClientStatesTest, VersionsCountTheChanges) {
  const TemporaryFolder folder;
  ClientStates states(folder.path(), 2);
  EXPECT_EQ(states.version(0), 0u);
  states.put(0, {1});
  states.put(0, {1});
  EXPECT_EQ(states.version(0), 2u);
  save(1, &states);
  EXPECT_EQ(states.version(0), 2u);
  EXPECT_EQ(states.version(1), 0u);
}

// A process that was killed between the clients' file and the checkpoint leaves the file behind.
TEST(ClientStatesTest, FilesOfNoCheckpointGo) {
  const TemporaryFolder folder;
  {
    ClientStates states(folder.path(), 1);
    states.put(0, {1});
    save(7, &states);
  }
  ClientStates again(folder.path(), 1);
  again.put(0, {2});
  save(1, &again);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(ClientStatesTest, FilesThatNobodyNeedsGo) {
  const TemporaryFolder folder;
  ClientStates states(folder.path(), 2);
  for (uint32_t round = 1; round <= 20; ++round) {
    states.put(0, {static_cast<uint8_t>(round)});
    if (round == 1) states.put(1, {77});
    save(round, &states);
  }
  // Client 1's, client 0's, and the one that the checkpoint before this one needs.
  EXPECT_EQ(folder.entries(), 3u);
  ClientStates restored(folder.path(), 2);
  restored.restore(20, {1, 20});
  EXPECT_EQ(restored.of(0), Bytes({20}));
  EXPECT_EQ(restored.of(1), Bytes({77}));
}

TEST(ClientStatesTest, NothingKeptWritesNothing) {
  const TemporaryFolder folder;
  ClientStates states(folder.path(), 2);
  EXPECT_TRUE(save(1, &states).empty());
  EXPECT_EQ(folder.entries(), 0u);
}

// Silently going on with what clients kept earlier would end with another model.
TEST(ClientStatesTest, AFileThatIsGoneIsMissed) {
  const TemporaryFolder folder;
  std::vector<uint32_t> needed;
  {
    ClientStates states(folder.path(), 2);
    states.put(0, {1});
    states.put(1, {1});
    save(1, &states);
    states.put(0, {2});
    needed = save(3, &states);
  }
  const std::filesystem::path last = folder / "round-00003.safetensors";
  ASSERT_TRUE(std::filesystem::remove(last));
  ClientStates restored(folder.path(), 2);
  EXPECT_EQ(error_text([&] { restored.restore(3, needed); }),
            last.string() + ": missing, and the checkpoint of round 3 needs what clients kept in it");
}

// More than names of their own would have room for in a file's header.
TEST(ClientStatesTest, ManyClients) {
  const TemporaryFolder folder;
  constexpr uint32_t kClients = 30000;
  std::vector<uint32_t> needed;
  {
    ClientStates states(folder.path(), kClients);
    for (uint32_t client = 0; client < kClients; ++client)
      states.put(client, Bytes(client % 3, static_cast<uint8_t>(client)));
    needed = save(1, &states);
  }
  ClientStates restored(folder.path(), kClients);
  restored.restore(1, needed);
  for (uint32_t client = 0; client < kClients; ++client)
    ASSERT_EQ(restored.of(client), Bytes(client % 3, static_cast<uint8_t>(client)));
}

TEST(ClientStatesTest, RefusesWhatDoesNotFit) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::vector<uint32_t>& clients, const std::vector<uint64_t>& sizes) {
    State state;
    state.add("clients", {clients.size()}, clients);
    state.add("sizes", {sizes.size()}, sizes);
    state.add("states", {3}, Bytes{1, 2, 3});
    write_state(folder / "round-00001.safetensors", state);
    ClientStates states(folder.path(), 2);
    return error_text([&] { states.restore(1, {1}); });
  };
  EXPECT_EQ(refusal({0, 1}, {1, 2}), "");
  EXPECT_THAT(refusal({0, 2}, {1, 2}), HasSubstr("found client 2, expected fewer than 2"));
  EXPECT_THAT(refusal({0, 1}, {1, 1}), HasSubstr("1 bytes after the last state"));
  EXPECT_NE(refusal({0, 1}, {1, 3}), "");
  EXPECT_NE(refusal({0, 1}, {1, ~uint64_t{0}}), "");
  EXPECT_NE(refusal({0}, {1, 2}), "");
}

}  // namespace
}  // namespace bitfed
