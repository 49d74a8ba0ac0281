#include "bitfed/simulation/in_process_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>

#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

// Answers with what it was given: the broadcast's number, its samples, its first random draw.
struct EchoClient : ClientHalf {
  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    if (samples.labels.front() == fails_at) throw input_error("client failed");
    RandomStream random = context.random;
    State state;
    state.add_scalar<int32_t>("number", broadcast.scalar<int32_t>("number"));
    state.add("labels", {samples.size()}, samples.labels);
    state.add_scalar<uint64_t>("draw", random.next_u64());
    context.progress(0.5);
    context.trained(samples.size());
    context.trained(samples.size());
    return state;
  }
  int fails_at = -1;
};

class InProcessTransportTest : public testing::Test {
 protected:
  InProcessTransportTest() {
    train_.columns = {"value"};
    for (uint16_t i = 0; i < 30; ++i) {
      train_.values.push_back(i);
      train_.labels.push_back(i);
      train_.class_names.push_back(std::to_string(i));
      partition_[i % partition_.size()].push_back(i);
    }
  }

  std::map<uint32_t, ClientResult> round(uint32_t number, const std::vector<uint32_t>& clients,
                                         unsigned threads = 1) {
    ThreadPool pool(threads);
    events_.clear();
    const auto transport =
        make_in_process_transport(options_, client_, train_, partition_, states_, pool,
                                  [this](const Event& event) { events_.push_back(event); });
    State broadcast;
    broadcast.add_scalar<int32_t>("number", 77);
    std::map<uint32_t, ClientResult> results;
    transport->run_round(number, encode(broadcast), clients, [&](ClientResult result) {
      const uint32_t who = result.client;
      results[who] = std::move(result);
    });
    return results;
  }

  SimulationOptions options_;
  EchoClient client_;
  Dataset train_;
  Partition partition_{std::vector<std::vector<uint32_t>>(6)};
  ClientStates states_{testing::TempDir() + "in-process-transport-test", 6};
  std::vector<Event> events_;
};

TEST_F(InProcessTransportTest, EachClientTrainsOnItsOwnSamples) {
  const auto results = round(1, {1, 4});
  ASSERT_EQ(results.size(), 2u);
  const State upload = decode(results.at(4).upload, "upload");
  EXPECT_EQ(upload.scalar<int32_t>("number"), 77);
  EXPECT_THAT(upload.values<uint16_t>("labels", {5}), ElementsAre(4, 10, 16, 22, 28));
  EXPECT_EQ(results.at(4).samples, 5u);
  EXPECT_EQ(results.at(4).trained_samples, 10u);
  EXPECT_GE(results.at(4).train_seconds, 0);
  EXPECT_THAT(events_,
              Contains(Event{{"event", "client-progress"}, {"round", 1}, {"client", 4}, {"fraction", 0.5}}));
}

TEST_F(InProcessTransportTest, ThreadsDoNotChangeTheUploads) {
  const auto one = round(2, {0, 1, 2, 3, 4, 5}, 1);
  const auto four = round(2, {5, 3, 1, 0, 2, 4}, 4);
  ASSERT_EQ(four.size(), 6u);
  for (const auto& [client, result] : one) EXPECT_EQ(result.upload, four.at(client).upload);
}

TEST_F(InProcessTransportTest, EveryClientAndRoundAndSeedDrawsForItself) {
  std::set<uint64_t> draws;
  for (uint64_t seed = 0; seed < 2; ++seed) {
    options_.seed = seed;
    for (uint32_t number = 1; number <= 3; ++number) {
      for (const auto& [client, result] : round(number, {0, 1, 2, 3, 4, 5})) {
        draws.insert(decode(result.upload, "upload").scalar<uint64_t>("draw"));
      }
    }
  }
  EXPECT_EQ(draws.size(), 2u * 3 * 6);
}

TEST_F(InProcessTransportTest, Dropout) {
  options_.dropout = 1;
  EXPECT_TRUE(round(1, {0, 1, 2}).empty());
  EXPECT_THAT(events_, ElementsAre(Event{{"event", "client-lost"}, {"round", 1}, {"client", 0}},
                                   Event{{"event", "client-lost"}, {"round", 1}, {"client", 1}},
                                   Event{{"event", "client-lost"}, {"round", 1}, {"client", 2}}));
  // All must answer before the training.
  EXPECT_EQ(round(0, {0, 1, 2}).size(), 3u);

  options_.dropout = 0.25;
  size_t answered = 0;
  for (uint32_t number = 1; number <= 200; ++number) answered += round(number, {0, 1, 2, 3, 4, 5}).size();
  EXPECT_NEAR(static_cast<double>(answered), 900, 5 * 15);  // 1200 * 0.25 * 0.75 = 15^2
  std::set<uint32_t> who;
  for (const auto& [client, result] : round(9, {0, 1, 2, 3, 4, 5})) who.insert(client);
  std::set<uint32_t> again;
  for (const auto& [client, result] : round(9, {0, 1, 2, 3, 4, 5}, 3)) again.insert(client);
  EXPECT_EQ(who, again);
}

TEST_F(InProcessTransportTest, AClientsErrorIsTheRoundsError) {
  client_.fails_at = 2;
  EXPECT_EQ(error_text([&] { round(1, {0, 1, 2, 3}, 2); }), "client failed");
}

TEST_F(InProcessTransportTest, StopsBeforeTheNextClient) {
  std::atomic<int> asked = 0;
  options_.stop = [&] { return ++asked > 2; };
  EXPECT_EQ(round(1, {0, 1, 2, 3, 4}).size(), 2u);
}

}  // namespace
}  // namespace bitfed
