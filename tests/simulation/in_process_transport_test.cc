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
using ::testing::HasSubstr;

// Answers with what it was given: the broadcast's number, its samples, its first random draw. Keeps the
// number of times that it took part.
struct EchoClient : ClientHalf {
  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    if (samples.labels.front() == fails_at) throw input_error("client failed");
    State kept;
    kept.add_scalar<uint32_t>("times", context.kept.empty() ? 1 : context.kept.scalar<uint32_t>("times") + 1);
    context.keep(kept);
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
    return round_of(client_, number, clients, threads);
  }

  std::map<uint32_t, ClientResult> round_of(const ClientHalf& half, uint32_t number,
                                            const std::vector<uint32_t>& clients, unsigned threads = 1) {
    ThreadPool pool(threads);
    events_.clear();
    received_.clear();
    const auto transport =
        make_in_process_transport(options_, half, train_, partition_, states_, pool,
                                  [this](const Event& event) { events_.push_back(event); });
    State broadcast;
    broadcast.add_scalar<int32_t>("number", 77);
    transport->run_round(number, encode(broadcast), clients, [&](ClientResult result) {
      const uint32_t who = result.client;
      result.upload = encode(result.state.value());
      received_[who] = std::move(result);
    });
    return received_;
  }

  std::vector<Bytes> kept() const {
    std::vector<Bytes> all;
    for (uint32_t client = 0; client < 6; ++client) all.push_back(states_.of(client));
    return all;
  }

  SimulationOptions options_;
  EchoClient client_;
  Dataset train_;
  Partition partition_{std::vector<std::vector<uint32_t>>(6)};
  ClientStates states_{testing::TempDir() + "in-process-transport-test", 6};
  std::vector<Event> events_;
  std::map<uint32_t, ClientResult> received_;  // also where the round failed
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
  EXPECT_THAT(events_, Contains(Event(ClientProgress{.round = 1, .client = 4, .fraction = 0.5})));
}

// With a hundred thousand people, the names of all in each client's samples would fill the memory.
TEST_F(InProcessTransportTest, AClientGetsNobodysName) {
  struct Nosy : EchoClient {
    State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
      names += samples.group_names.size() + samples.groups.size();
      return EchoClient::train(broadcast, samples, context);
    }
    mutable size_t names = 0;
  } nosy;
  train_.groups.assign(train_.size(), 0);
  train_.group_names = {"ann", "bob"};
  round_of(nosy, 1, {0, 1, 2});
  EXPECT_EQ(nosy.names, 0u);
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
  EXPECT_THAT(events_, ElementsAre(ClientLost{1, 0}, ClientLost{1, 1}, ClientLost{1, 2}));
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

// Trains three clients in one call, the last first, and notes the sizes of the groups.
struct CohortEcho : EchoClient {
  size_t cohort() const override { return 3; }
  std::vector<CohortUpload> train_cohort(const State& broadcast, std::span<const CohortClient> clients,
                                         ThreadPool* pool) const override {
    EXPECT_NE(pool, nullptr);
    if (breaks) throw failure("the device is gone");
    groups.push_back(clients.size());
    std::vector<CohortUpload> uploads = EchoClient::train_cohort(
        broadcast, std::vector<CohortClient>(clients.rbegin(), clients.rend()), pool);
    std::reverse(uploads.begin(), uploads.end());
    return uploads;
  }
  bool breaks = false;
  mutable std::vector<size_t> groups;
};

// The events of each client, in order; groups change the order among clients.
std::map<uint32_t, std::vector<Event>> by_client(const std::vector<Event>& events) {
  std::map<uint32_t, std::vector<Event>> sorted;
  for (const Event& event : events) {
    const auto* lost = std::get_if<ClientLost>(&event);
    sorted[lost != nullptr ? lost->client : std::get<ClientProgress>(event).client].push_back(event);
  }
  return sorted;
}

TEST_F(InProcessTransportTest, ACohortGivesWhatSingleClientsGive) {
  options_.dropout = 0.3;
  const CohortEcho cohort;
  size_t lost = 0;
  for (uint32_t number = 0; number <= 20; ++number) {
    const std::vector<Bytes> before = kept();
    const auto single = round(number, {0, 1, 2, 3, 4, 5});
    const std::vector<Bytes> kept_by_single = kept();
    const auto events = by_client(events_);
    for (uint32_t client = 0; client < 6; ++client) states_.put(client, before[client]);

    cohort.groups.clear();
    const auto grouped = round_of(cohort, number, {0, 1, 2, 3, 4, 5}, 2);
    ASSERT_EQ(grouped.size(), single.size());
    for (const auto& [client, result] : single) {
      EXPECT_EQ(grouped.at(client).upload, result.upload);
      EXPECT_EQ(grouped.at(client).samples, result.samples);
      EXPECT_EQ(grouped.at(client).trained_samples, result.trained_samples);
      EXPECT_EQ(grouped.at(client).keeps_state, result.keeps_state);
    }
    EXPECT_EQ(kept(), kept_by_single);
    EXPECT_EQ(by_client(events_), events);
    // Full groups, and a smaller last one.
    std::vector<size_t> expected(single.size() / 3, 3);
    if (single.size() % 3 > 0) expected.push_back(single.size() % 3);
    EXPECT_EQ(cohort.groups, expected);
    lost += 6 - single.size();
  }
  EXPECT_GT(lost, 10u);
}

// A group takes as long as its largest client.
TEST_F(InProcessTransportTest, ClientsOfLikeSizeTrainTogether) {
  struct Sizes : EchoClient {
    size_t cohort() const override { return 2; }
    std::vector<CohortUpload> train_cohort(const State& broadcast, std::span<const CohortClient> clients,
                                           ThreadPool* pool) const override {
      for (const CohortClient& client : clients) samples.push_back(client.samples.size());
      return EchoClient::train_cohort(broadcast, clients, pool);
    }
    mutable std::vector<size_t> samples;
  } sizes;
  for (const uint32_t client : {1, 4}) {  // 5 samples each before
    partition_[client].push_back(partition_[0].back());
    partition_[0].pop_back();
  }
  round_of(sizes, 1, {0, 1, 2, 4});
  EXPECT_THAT(sizes.samples, ElementsAre(6, 6, 5, 3));
}

TEST_F(InProcessTransportTest, AClientThatFailsInACohortFailsAlone) {
  CohortEcho cohort;
  cohort.fails_at = 1;
  EXPECT_EQ(error_text([&] { round_of(cohort, 1, {0, 1, 2, 3}); }), "client failed");
  ASSERT_EQ(received_.size(), 2u);
  EXPECT_TRUE(received_.contains(0) && received_.contains(2));
  EXPECT_FALSE(states_.of(0).empty());
  EXPECT_TRUE(states_.of(1).empty());
  // So does one whose own state is damaged; the round ends with its group, as it does with a single client.
  cohort.fails_at = -1;
  states_.put(2, {1, 2, 3});
  EXPECT_THAT(error_text([&] { round_of(cohort, 1, {0, 1, 2, 3}); }), HasSubstr("the client's own state"));
  EXPECT_EQ(received_.size(), 2u);
  EXPECT_EQ(cohort.groups.back(), 2u);
}

TEST_F(InProcessTransportTest, WhatEndsACohortEndsTheRound) {
  CohortEcho cohort;
  cohort.breaks = true;
  EXPECT_EQ(error_text(
                [&] {
                  round_of(cohort, 1, {0, 1, 2, 3});
                },
                Error::Kind::kFailure),
            "the device is gone");
  EXPECT_TRUE(received_.empty());
}

TEST_F(InProcessTransportTest, StopsBeforeTheNextCohort) {
  std::atomic<int> asked = 0;
  options_.stop = [&] { return ++asked > 4; };
  EXPECT_EQ(round_of(CohortEcho(), 1, {0, 1, 2, 3, 4, 5}).size(), 3u);
}

}  // namespace
}  // namespace bitfed
