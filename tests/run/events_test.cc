#include "bitfed/run/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using testing::HasSubstr;

// One event of every kind, in which every field has a value of its own, and what stands in the log for it.
const std::vector<std::pair<Event, std::string>>& every_event() {
  static const std::vector<std::pair<Event, std::string>> kEvents = [] {
    std::vector<std::pair<Event, std::string>> events;
    // One statement per event: as one initialiser list they take GCC minutes and gigabytes.
    const auto add = [&](Event event, const char* line) { events.emplace_back(std::move(event), line); };
    add(Loading{}, R"({"event":"loading"})");
    add(RunStarted{"n", "m", "d", "p", 1, 2, 3, 4, 5, 6, {{"k"}}, 7, 8, "f"},
        R"({"event":"run-started","name":"n","method":"m","dataset":"d","partition":"p","clients":1,)"
        R"("clients_per_round":2,"rounds":3,"train_samples":4,"test_samples":5,"dropped_rows":6,)"
        R"("dropped_keys":["k"],"port":7,"http_port":8,"federation":"f"})");
    add(RoundStarted{1, {2, 3}, 4},
        R"({"event":"round-started","round":1,"clients":[2,3],"download_bytes":4})");
    add(ClientProgress{1, 2, 0.5}, R"({"event":"client-progress","round":1,"client":2,"fraction":0.5})");
    add(ClientFinished{1, 2, 3, 4, 0.5, Origin::kReused},
        R"({"event":"client-finished","round":1,"client":2,"samples":3,"upload_bytes":4,"seconds":0.5,)"
        R"("origin":"reused"})");
    add(ClientLost{1, 2, "t"}, R"({"event":"client-lost","round":1,"client":2,"text":"t"})");
    add(RoundFinished{1, 2, 3, 4, 0.5, Scores{0.25, 0.75, 0.125, 0.625}, 1.5, 8.5, 6, 0.875, 7},
        R"({"event":"round-finished","round":1,"uploads":2,"upload_bytes":3,"download_bytes":4,)"
        R"("aggregation_seconds":0.5,"accuracy":0.25,"validation_accuracy":0.75,"f1_micro":0.125,)"
        R"("local_accuracy_mean":0.625,"evaluation_seconds":1.5,"epsilon":8.5,"workers":6,)"
        R"("workers_busy":0.875,"received_bytes":7})");
    add(RunFinished{0.5, "0a"}, R"({"event":"run-finished","accuracy":0.5,"model_sha256":"0a"})");
    add(WaitingForClients{1, 2, 3}, R"({"event":"waiting-for-clients","round":1,"present":2,"needed":3})");
    add(ClientConnected{1, "n", "p", "v", 2},
        R"({"event":"client-connected","client":1,"name":"n","peer":"p","version":"v","left_out":2})");
    add(ClientDisconnected{1, "n", "p", 2},
        R"({"event":"client-disconnected","client":1,"name":"n","peer":"p","left_out":2})");
    add(ClientFault{"late", 1, "n", "p", "t", 2},
        R"({"event":"client-fault","kind":"late","client":1,"name":"n","peer":"p","text":"t","left_out":2})");
    add(Warning{"t", 2}, R"({"event":"warning","text":"t","left_out":2})");
    add(DeviceConnecting{"s"}, R"({"event":"connecting","server":"s"})");
    add(DeviceDisconnected{"t"}, R"({"event":"disconnected","text":"t"})");
    add(CertificateExpires{"f", -1}, R"({"event":"certificate-expires","file":"f","days":-1})");
    add(DeviceJoined{"s", "f", 1, 2},
        R"({"event":"joined","server":"s","federation":"f","client":1,"samples":2})");
    add(WorkReceived{1, 2}, R"({"event":"work","round":1,"download_bytes":2})");
    add(TrainingFailed{1, "t"}, R"({"event":"training-failed","round":1,"text":"t"})");
    add(UpdateSettled{1, "accepted", 2, 0.5, "t"},
        R"({"event":"update-settled","round":1,"verdict":"accepted","upload_bytes":2,"seconds":0.5,"text":"t"})");
    add(ResultReceived{1, "m"}, R"({"event":"finished","rounds":1,"model":"m"})");
    return events;
  }();
  return kEvents;
}

TEST(Events, AreReadAsTheyAreWritten) {
  std::set<size_t> kinds;
  for (const auto& [event, line] : every_event()) {
    kinds.insert(event.index());
    EXPECT_EQ(event_line(event, ""), line);
    EXPECT_EQ(parse_event(line, "log"), event) << line;
    EXPECT_EQ(parse_event(event_line(event, "2026-01-02T03:04:05.006Z"), "log"), event) << line;
    EXPECT_THAT(line, HasSubstr(fmt::format("\"event\":\"{}\"", kind_of(event))));
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Event>) << "a kind of event is not tested";
}

TEST(Events, WithoutWhatIsOptional) {
  const RunStarted started{"n", "m", "d", "p", 1, 2, 3, 4, 5};
  EXPECT_THAT(event_line(started, ""), testing::EndsWith("\"test_samples\":5}"));
  EXPECT_EQ(parse_event(event_line(started, ""), "log"), Event(started));
  // After the preparation nothing is evaluated.
  const RoundFinished preparation{0, 2, 3, 4, 0.5};
  EXPECT_THAT(event_line(preparation, ""), testing::EndsWith("\"aggregation_seconds\":0.5}"));
  EXPECT_EQ(parse_event(event_line(preparation, ""), "log"), Event(preparation));
  const RoundFinished plain{1, 2, 3, 4, 0.5, Scores{.accuracy = 1, .f1_micro = 1}, 0.25};
  EXPECT_THAT(
      event_line(plain, ""),
      HasSubstr(
          "\"accuracy\":1.0,\"validation_accuracy\":null,\"f1_micro\":1.0,\"local_accuracy_mean\":null"));
  EXPECT_EQ(parse_event(event_line(plain, ""), "log"), Event(plain));
  EXPECT_EQ(event_line(ClientLost{1, 2}, ""), R"({"event":"client-lost","round":1,"client":2})");
  EXPECT_EQ(event_line(ClientDisconnected{1, "n", "p"}, ""),
            R"({"event":"client-disconnected","client":1,"name":"n","peer":"p"})");
  const ClientFault unknown{.kind = "handshake"};
  EXPECT_THAT(event_line(unknown, ""), HasSubstr("\"client\":null"));
  EXPECT_EQ(parse_event(event_line(unknown, ""), "log"), Event(unknown));
}

// What an earlier build logged is read, and written again with the same bytes.
TEST(Events, OfEarlierRuns) {
  size_t lines = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(BITFED_TESTS_DIR "/golden/interrupted")) {
    if (entry.path().filename() != "events.jsonl") continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line); ++lines) {
      const auto event = parse_event(line, entry.path().string());
      ASSERT_TRUE(event) << line;
      const size_t time = line.find("\"time\":\"") + 8;
      EXPECT_EQ(event_line(*event, line.substr(time, line.size() - time - 2)), line);
    }
  }
  EXPECT_GT(lines, 40u);
}

TEST(Events, OfOtherVersions) {
  EXPECT_EQ(parse_event(R"({"event": "something-new", "round": "x"})", "log"), std::nullopt);
  EXPECT_EQ(parse_event(R"({"event": "client-lost", "round": 1, "client": 2, "why": []})", "log"),
            Event(ClientLost{1, 2}));
}

TEST(Events, Malformed) {
  const auto refusal = [](const char* line) { return error_text([&] { parse_event(line, "log: line 3"); }); };
  EXPECT_THAT(refusal("nonsense"), HasSubstr("log: line 3: found text that is not JSON"));
  EXPECT_THAT(refusal("[]"), HasSubstr("log: line 3: found array"));
  EXPECT_THAT(refusal("{}"), HasSubstr("expected a JSON object with an \"event\""));
  EXPECT_EQ(refusal(R"({"event": "client-lost", "round": "one", "client": 1})"),
            "log: line 3: round: found string, expected a count");
  EXPECT_EQ(refusal(R"({"event": "client-lost", "round": 1})"),
            "log: line 3: client: found nothing, expected a count");
  EXPECT_EQ(
      refusal(R"({"event":"client-finished","round":1,"client":2,"samples":3,"upload_bytes":4,"seconds":0.5,)"
              R"("origin":"stolen"})"),
      "log: line 3: origin: found \"stolen\", expected one of: trained, checkpoint, reused");
}

}  // namespace
}  // namespace bitfed
