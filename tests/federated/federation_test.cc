#include "bitfed/federated/federation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "bitfed/base/hash/digest.h"
#include "bitfed/federated/folder_store.h"
#include "bitfed/federated/privacy/random_bits.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Everything that could crash asks here first; the step number `crash_at` does.
struct Steps {
  int crash_at = -1;
  std::atomic<int> taken = 0;  // a round may end on a thread of its own
  void step() {
    if (taken++ == crash_at) throw std::runtime_error("crash");
  }
};

struct FakeModel : Model {
  explicit FakeModel(int64_t number) : value(number) {}
  std::vector<float> scores(const Dataset&, ThreadPool&) const override { return {}; }
  void check_fits(const Dataset&) const override {}
  std::unique_ptr<Predictor> predictor() const override { return nullptr; }
  size_t class_count() const override { return 1; }
  State state() const override {
    State state;
    state.add_scalar<int64_t>("value", value);
    return state;
  }
  ModelCosts costs() const override { return {}; }
  int64_t value;
};

// Its value v becomes 3 v + the sum of the uploads, each of which depends on v: every round counts, and so
// does every client of it. In round 0 it is told an offset.
class FakeServer : public ServerHalf {
 public:
  FakeServer(Steps* steps, bool prepares) : steps_(steps), preparing_(prepares) {}

  bool needs_preparation() const override { return preparing_; }
  State broadcast(uint32_t) const override {
    steps_->step();
    State state;
    state.add_scalar<int64_t>("value", value_);
    return state;
  }
  void accept(uint32_t client, const State& upload) override {
    steps_->step();
    received_[client] = upload.scalar<int64_t>("answer");
  }
  void accept_all(std::span<const ArrivedUpload> uploads) override {
    batches.push_back(uploads.size());
    ServerHalf::accept_all(uploads);
  }
  void finish_round(uint32_t) override {
    steps_->step();
    value_ *= 3;
    for (const auto& [client, answer] : received_) value_ += answer;
    if (noise) value_ += static_cast<int64_t>(noise() % 1000000);
    received_.clear();
    preparing_ = false;
  }
  std::unique_ptr<Model> model() const override { return std::make_unique<FakeModel>(value_); }
  State save() const override {
    steps_->step();
    State state = FakeModel(value_).state();
    state.metadata["prepared"] = preparing_ ? "no" : "yes";
    return state;
  }
  void restore(const State& saved) override {
    value_ = saved.scalar<int64_t>("value");
    preparing_ = saved.text("prepared") == "no";
  }
  int64_t value() const { return value_; }

  RandomWords noise;  // empty: none
  std::vector<size_t> batches;

 private:
  Steps* steps_;
  bool preparing_;
  int64_t value_ = 1;
  std::map<uint32_t, int64_t> received_;
};

Bytes answer(const Bytes& broadcast, uint32_t round, uint32_t client) {
  State state;
  state.add_scalar<int64_t>(
      "answer", decode(broadcast, "broadcast").scalar<int64_t>("value") % 1000 * (client + 2) + round);
  return encode(state);
}

class FakeTransport : public Transport {
 public:
  explicit FakeTransport(Steps* steps) : steps_(steps) {}

  void run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                 const std::function<void(ClientResult)>& receive) override {
    steps_->step();
    broadcasts[round] = broadcast;
    asked[round].insert(asked[round].end(), clients.begin(), clients.end());
    // The last first: uploads come in any order.
    for (auto client = clients.rbegin(); client != clients.rend(); ++client) {
      if (silent.contains(*client) || round == silent_round) continue;
      steps_->step();
      Bytes upload = answer(broadcast, round, *client);
      if (garbles == static_cast<int64_t>(*client)) upload.resize(empties ? 0 : upload.size() - 1);
      ClientResult result{*client, upload, 10, 20, 0.25};
      if (in_process) {
        result.state = decode(upload, "upload");
        result.upload.clear();
        result.more_follow = client + 1 != clients.rend() && *client % 3 != 0;
      }
      receive(std::move(result));
    }
  }

  std::map<uint32_t, std::vector<uint32_t>> asked;
  std::map<uint32_t, Bytes> broadcasts;
  std::set<uint32_t> silent;
  uint32_t silent_round = UINT32_MAX;  // in which nobody answers
  int64_t garbles = -1;
  bool empties = false;     // garbled uploads have no bytes
  bool in_process = false;  // uploads come as they are, several together

 private:
  Steps* steps_;
};

// A store of one process, whose rounds can be begun again.
struct BeginsAgain : RoundStore {
  void put(uint32_t, const ClientResult&, const std::string&) override {}
  std::optional<ClientResult> find(uint32_t, uint32_t, const std::string&) const override {
    return std::nullopt;
  }
  void remove_round(uint32_t) override {}
  void save(uint32_t, const State&) override {}
  std::optional<State> load() const override { return std::nullopt; }
  std::optional<uint32_t> abandon_round(uint32_t round) override { return ++count[round]; }
  uint32_t attempts(uint32_t round) const override { return count.contains(round) ? count.at(round) : 0; }
  std::map<uint32_t, uint32_t> count;
};

struct Outcome {
  int64_t value = 0;
  int64_t model = 0;
  uint32_t model_round = 0;
  FederationTotals totals;
  Evaluation evaluation;
  std::vector<Event> events;
  std::map<uint32_t, std::vector<uint32_t>> asked;
  uint64_t private_rounds = 0;
  std::vector<size_t> batches;  // uploads that the server got together
};

class FederationTest : public testing::Test {
 protected:
  FederationTest() {
    options_.seed = 4;
    options_.rounds = 3;
    options_.clients = 5;
    options_.clients_per_round = 2;
    checkpoint_ = folder_ / "checkpoint";
    options_.depends_on = "recipe\n";
    options_.checkpoint_seconds = 0;
    options_.keep_seconds = 0;
  }

  // One process's life on the checkpoint folder.
  Outcome live(int crash_at = -1) {
    Steps steps{crash_at};
    FakeServer server(&steps, prepares_);
    if (options_.draws_secretly) server.noise = system_random_words();
    FakeTransport transport(&steps);
    transport.silent = silent_;
    transport.silent_round = silent_round_;
    transport.garbles = garbles_;
    transport.empties = empties_;
    transport.in_process = in_process_;
    Outcome outcome;
    std::mutex mutex;
    FolderStore folder(checkpoint_);
    RoundStore& store = begins_again_ ? static_cast<RoundStore&>(again_) : folder;
    Federation federation(
        options_, server, transport, store,
        [&](const Model& model) {
          steps.step();
          const auto value = static_cast<double>(dynamic_cast<const FakeModel&>(model).value);
          Evaluation evaluation;
          evaluation.scores.accuracy = 1 / (1 + value);
          // Best after the second round, of those that there are.
          evaluation.scores.validation_accuracy = 1 - std::fabs(value - best_) / 1e9;
          evaluation.confusion_matrix = {{1}};
          return evaluation;
        },
        [&](const Event& event) {
          const std::lock_guard lock(mutex);
          outcome.events.push_back(event);
          if (const auto* finished = std::get_if<RoundFinished>(&event);
              finished != nullptr && finished->scores)
            seen_[finished->round].insert(finished->scores->accuracy);
          steps.step();
        });
    try {
      federation.run();
    } catch (...) {
      broadcasts_.push_back(transport.broadcasts);
      throw;
    }
    broadcasts_.push_back(transport.broadcasts);
    outcome.private_rounds = federation.private_rounds();
    outcome.value = server.value();
    outcome.batches = server.batches;
    outcome.totals = federation.totals();
    outcome.model = dynamic_cast<const FakeModel&>(federation.model()).value;
    outcome.model_round = federation.model_round();
    outcome.evaluation = federation.evaluation();
    outcome.asked = transport.asked;
    return outcome;
  }

  void start_afresh() { fs::remove_all(checkpoint_); }

  TemporaryFolder folder_;
  FederationOptions options_;
  fs::path checkpoint_;
  bool prepares_ = false;
  std::set<uint32_t> silent_;
  uint32_t silent_round_ = UINT32_MAX;
  bool begins_again_ = false;
  BeginsAgain again_;
  int64_t garbles_ = -1;
  bool empties_ = false;
  bool in_process_ = false;
  double best_ = 0;                                    // the model that is best on validation data
  std::map<uint32_t, std::set<double>> seen_;          // accuracies of a round in events, of all lives
  std::vector<std::map<uint32_t, Bytes>> broadcasts_;  // that clients received, by life and round
};

// The same computed without a federation.
int64_t expected_value(uint64_t seed, uint32_t rounds, uint32_t clients, uint32_t per_round, bool prepares) {
  int64_t value = 1;
  for (uint32_t round = prepares ? 0 : 1; round <= rounds; ++round) {
    int64_t next = 3 * value;
    for (const uint32_t client : sample_clients(seed, round, clients, round == 0 ? clients : per_round)) {
      next += value % 1000 * (client + 2) + round;
    }
    value = next;
  }
  return value;
}

// Those who are left out are asked in no round, the preparation included; the others are drawn as before.
TEST_F(FederationTest, WithoutSomeClients) {
  prepares_ = true;
  options_.clients_per_round = 3;
  options_.without = {1, 3};
  int64_t value = 1;
  for (uint32_t round = 0; round <= 3; ++round) {
    int64_t next = 3 * value;
    for (const uint32_t client : sample_clients(4, round, 5, round == 0 ? 5 : 3))
      next += client == 1 || client == 3 ? 0 : value % 1000 * (client + 2) + round;
    value = next;
  }
  const Outcome outcome = live();
  EXPECT_EQ(outcome.value, value);
  EXPECT_THAT(outcome.asked.at(0), ElementsAre(0, 2, 4));
  EXPECT_EQ(checkpoint_round(*FolderStore(checkpoint_).load()), 3u);
}

// Noise that nobody can repeat: after a crash at any point, what clients or events showed of a round is never
// drawn again, and every round that was shown is counted.
TEST_F(FederationTest, NoiseIsDrawnOnceWhereverItCrashes) {
  options_.privacy = DifferentialPrivacy{};
  options_.privacy->release = {1, 0.4};
  options_.draws_secretly = true;
  options_.checkpoint_seconds = 1000;  // so that only privacy asks for them
  int crashes = 0;
  for (int crash_at = 0;; ++crash_at) {
    start_afresh();
    seen_.clear();
    broadcasts_.clear();
    bool crashed = false;
    try {
      live(crash_at);
    } catch (const std::runtime_error&) {
      crashed = true;
      ++crashes;
    }
    const Outcome outcome = live();
    EXPECT_EQ(outcome.private_rounds, 3u);
    for (const auto& [round, accuracies] : seen_)
      EXPECT_EQ(accuracies.size(), 1u) << crash_at << " " << round;
    for (uint32_t round = 1; round <= 3; ++round) {
      std::set<Bytes> shown;
      for (const auto& life : broadcasts_) {
        if (life.contains(round)) shown.insert(life.at(round));
      }
      EXPECT_LE(shown.size(), 1u) << "crash at " << crash_at << ", round " << round;
    }
    if (!crashed) break;
  }
  EXPECT_GT(crashes, 10);
}

// Repetitions of an audit: the same seed, and other clients for each draw.
TEST_F(FederationTest, AnotherDrawTakesOtherClients) {
  options_.privacy = DifferentialPrivacy{};
  options_.privacy->release = {1, 0.4};
  options_.rounds = 25;
  std::set<std::map<uint32_t, std::vector<uint32_t>>> asked;
  for (const uint32_t draw : {0u, 1u, 2u, 1u}) {
    options_.privacy->draw = draw;
    start_afresh();
    asked.insert(live().asked);
  }
  EXPECT_EQ(asked.size(), 3u);
}

// Each client is drawn with probability 2 / 5, whoever else is; nobody at all is a round, too, and counts.
TEST_F(FederationTest, PoissonSamplingAsAccounted) {
  options_.privacy = DifferentialPrivacy{};
  options_.privacy->release = {1, 0.4};
  options_.rounds = 25;
  options_.checkpoint_seconds = 1000;
  options_.keep_seconds = 1000;
  options_.evaluate_every = 25;
  std::vector<int> taken(5);
  std::map<size_t, int> sizes;
  for (options_.seed = 0; options_.seed < 40; ++options_.seed) {
    start_afresh();
    const Outcome outcome = live();
    EXPECT_EQ(outcome.private_rounds, 25u);
    for (uint32_t round = 1; round <= 25; ++round) {
      const auto& asked = outcome.asked.at(round);
      ++sizes[asked.size()];
      for (const uint32_t client : asked) ++taken[client];
    }
  }
  for (const int count : taken) EXPECT_NEAR(count, 400, 4 * std::sqrt(1000 * 0.4 * 0.6));
  const double binomial[] = {0.07776, 0.2592, 0.3456, 0.2304, 0.0768, 0.01024};
  for (size_t size = 0; size <= 5; ++size) {
    const double expected = 1000 * binomial[size];
    EXPECT_NEAR(sizes[size], expected, 4 * std::sqrt(expected) + 1) << size;
  }
  EXPECT_GT(sizes[0], 0);
}

TEST_F(FederationTest, StopsBeforeItPassesMaxEpsilon) {
  options_.privacy = DifferentialPrivacy{};
  options_.privacy->release = {1, 0.4};
  options_.rounds = 50;
  options_.evaluate_every = 50;
  const double after_seven = epsilon_of({1, 0.4}, 7, 1e-5);
  options_.privacy->max_epsilon = after_seven + 1e-9;
  const Outcome outcome = live();
  EXPECT_EQ(outcome.private_rounds, 7u);
  EXPECT_EQ(outcome.model_round, 7u);
  const auto* last = std::get_if<Warning>(&outcome.events.back());
  ASSERT_NE(last, nullptr);
  EXPECT_THAT(last->text, HasSubstr("round 8 is not run: it would spend epsilon"));
  for (const Event& event : outcome.events) {
    if (const auto* round = std::get_if<RoundFinished>(&event); round != nullptr && round->round == 7) {
      EXPECT_NEAR(round->epsilon.value(), after_seven, 1e-9);
    }
  }
  EXPECT_EQ(live().private_rounds, 7u);  // and once more
  start_afresh();
  options_.privacy->max_epsilon = 0.001;
  EXPECT_THAT(error_text([&] { live(); }), HasSubstr("privacy.max_epsilon: round 1 is not run"));
}

TEST_F(FederationTest, EndsWithTheModelThatWasBestOnValidation) {
  const int64_t second = expected_value(4, 2, 5, 2, false);
  best_ = static_cast<double>(second);
  EXPECT_EQ(live().model, expected_value(4, 3, 5, 2, false));  // the last, as nothing else was asked for
  options_.select_by_validation = true;
  for (int crash_at = 0;; ++crash_at) {
    start_afresh();
    bool crashed = false;
    try {
      live(crash_at);
    } catch (const std::runtime_error&) {
      crashed = true;
    }
    const Outcome outcome = live();  // goes on, or finds all done
    EXPECT_EQ(outcome.model, second) << crash_at;
    EXPECT_EQ(outcome.model_round, 2u);
    EXPECT_NEAR(outcome.evaluation.scores.validation_accuracy.value(), 1, 1e-12);
    if (!crashed) break;
  }
}

// A round that ends while the next one trains is evaluated, saved and reported as others are; an error of its
// evaluation ends the run.
TEST_F(FederationTest, ARoundMayEndWhileTheNextOneTrains) {
  options_.rounds = 6;
  options_.select_by_validation = true;
  best_ = static_cast<double>(expected_value(4, 4, 5, 2, false));
  const Outcome in_turn = live();
  start_afresh();
  options_.ends_beside = true;
  const Outcome beside = live();
  EXPECT_EQ(beside.model, in_turn.model);
  EXPECT_EQ(beside.model_round, 4u);
  EXPECT_EQ(beside.evaluation, in_turn.evaluation);
  EXPECT_EQ(beside.totals.uploads, in_turn.totals.uploads);
  EXPECT_GT(beside.totals.evaluation_seconds, 0);
  std::vector<uint32_t> finished;
  for (const Event& event : beside.events) {
    const auto* round = std::get_if<RoundFinished>(&event);
    if (round == nullptr) continue;
    finished.push_back(round->round);
    EXPECT_TRUE(round->scores && round->evaluation_seconds);
  }
  EXPECT_THAT(finished, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(checkpoint_round(*FolderStore(checkpoint_).load()), 6u);
}

// Of five rounds the second, the fourth and the last are evaluated; the best of these is chosen, though the
// third would be better. After every crash, too.
TEST_F(FederationTest, EvaluatesEverySecondRound) {
  options_.rounds = 5;
  options_.evaluate_every = 2;
  best_ = static_cast<double>(expected_value(4, 3, 5, 2, false));
  const int64_t second = expected_value(4, 2, 5, 2, false);
  std::vector<uint32_t> evaluated;
  const Outcome last = live();
  for (const Event& event : last.events) {
    const auto* round = std::get_if<RoundFinished>(&event);
    if (round == nullptr) continue;
    if (round->scores) evaluated.push_back(round->round);
    EXPECT_EQ(round->scores.has_value(), round->evaluation_seconds.has_value());
  }
  EXPECT_THAT(evaluated, ElementsAre(2, 4, 5));
  EXPECT_EQ(last.model_round, 5u);
  EXPECT_EQ(last.model, expected_value(4, 5, 5, 2, false));
  options_.select_by_validation = true;
  for (int crash_at = 0;; ++crash_at) {
    start_afresh();
    bool crashed = false;
    try {
      live(crash_at);
    } catch (const std::runtime_error&) {
      crashed = true;
    }
    const Outcome outcome = live();
    ASSERT_EQ(outcome.model, second) << crash_at;
    ASSERT_EQ(outcome.model_round, 2u) << crash_at;
    if (!crashed) break;
  }
}

// Longer than the run: its last round alone.
TEST_F(FederationTest, EvaluatesTheLastRoundAtLeast) {
  options_.evaluate_every = 100;
  for (int crash_at = 0;; ++crash_at) {
    start_afresh();
    bool crashed = false;
    try {
      live(crash_at);
    } catch (const std::runtime_error&) {
      crashed = true;
    }
    const Outcome outcome = live();
    ASSERT_EQ(outcome.model_round, 3u) << crash_at;
    ASSERT_EQ(outcome.evaluation.scores.accuracy, 1.0 / static_cast<double>(1 + outcome.value));
    if (!crashed) break;
  }
}

TEST_F(FederationTest, RunsItsRounds) {
  for (const bool prepares : {false, true}) {
    start_afresh();
    prepares_ = prepares;
    const Outcome outcome = live();
    EXPECT_EQ(outcome.value, expected_value(4, 3, 5, 2, prepares));
    EXPECT_EQ(outcome.asked.count(0), prepares ? 1u : 0u);
    if (prepares) {
      EXPECT_THAT(outcome.asked.at(0), ElementsAre(0, 1, 2, 3, 4));
    }
    for (uint32_t round = 1; round <= 3; ++round) {
      EXPECT_EQ(outcome.asked.at(round), sample_clients(4, round, 5, 2));
    }
  }
}

TEST_F(FederationTest, TotalsByHand) {
  prepares_ = true;
  const Outcome outcome = live();
  const uint64_t bytes = answer(encode(FakeModel(1).state()), 1, 0).size();
  const uint64_t broadcast = encode(FakeModel(1).state()).size();
  const uint64_t uploads = 5 + 3 * 2;
  EXPECT_EQ(outcome.totals.uploads, uploads);
  EXPECT_EQ(outcome.totals.upload_bytes, uploads * bytes);
  EXPECT_EQ(outcome.totals.download_bytes, uploads * broadcast);
  EXPECT_EQ(outcome.totals.train_samples, uploads * 20);
  EXPECT_DOUBLE_EQ(outcome.totals.train_seconds, uploads * 0.25);
  EXPECT_EQ(outcome.totals.reused_uploads, 0u);
}

uint32_t round_of(const Event& event) {
  if (const auto* started = std::get_if<RoundStarted>(&event)) return started->round;
  if (const auto* client = std::get_if<ClientFinished>(&event)) return client->round;
  return std::get<RoundFinished>(event).round;
}

TEST_F(FederationTest, EventsInOrder) {
  prepares_ = true;
  options_.rounds = 2;
  const Outcome outcome = live();
  std::vector<std::string> kinds;
  for (const Event& event : outcome.events) {
    kinds.push_back(fmt::format("{} {}", kind_of(event), round_of(event)));
  }
  const std::string done0 = "client-finished 0";
  const std::string done1 = "client-finished 1";
  const std::string done2 = "client-finished 2";
  EXPECT_THAT(kinds, ElementsAre("round-started 0", done0, done0, done0, done0, done0, "round-finished 0",
                                 "round-started 1", done1, done1, "round-finished 1",  //
                                 "round-started 2", done2, done2, "round-finished 2"));
  const auto& client = std::get<ClientFinished>(outcome.events[8]);
  EXPECT_EQ(client.samples, 10u);
  EXPECT_EQ(client.seconds, 0.25);
  EXPECT_EQ(client.origin, Origin::kTrained);
  EXPECT_EQ(std::get<RoundStarted>(outcome.events[7]).clients, sample_clients(4, 1, 5, 2));
  // The preparation is not evaluated, training is.
  EXPECT_FALSE(std::get<RoundFinished>(outcome.events[6]).scores);
  EXPECT_FALSE(std::get<RoundFinished>(outcome.events[6]).evaluation_seconds);
  EXPECT_TRUE(std::get<RoundFinished>(outcome.events[10]).scores);
  EXPECT_TRUE(std::get<RoundFinished>(outcome.events[10]).evaluation_seconds);
  EXPECT_EQ(std::get<RoundFinished>(outcome.events[10]).uploads, 2u);
  EXPECT_EQ(outcome.evaluation.scores.accuracy, 1.0 / static_cast<double>(1 + outcome.value));
  EXPECT_FALSE(outcome.evaluation.confusion_matrix.empty());
}

// Whatever step a process dies at, the next one ends where an undisturbed run does; also where a round ends
// while the next one trains.
TEST_F(FederationTest, ResumesAfterACrashAtEveryStep) {
  struct Kind {
    bool prepares, beside, behind;
  };
  for (const Kind kind : {Kind{false, false, false},
                          {true, false, false},
                          {false, true, false},
                          {false, false, true},
                          {true, false, true},
                          {false, true, true}}) {
    prepares_ = kind.prepares;
    options_.ends_beside = false;
    options_.writes_behind = kind.behind;
    start_afresh();
    const Outcome undisturbed = live();
    options_.ends_beside = kind.beside;
    int crash_at = 0;
    for (bool crashed = true; crashed; ++crash_at) {
      start_afresh();
      crashed = false;
      try {
        live(crash_at);
      } catch (const std::runtime_error& error) {
        ASSERT_STREQ(error.what(), "crash");
        crashed = true;
      }
      const Outcome resumed = live();
      ASSERT_EQ(resumed.value, undisturbed.value) << crash_at;
      ASSERT_EQ(resumed.totals.uploads, undisturbed.totals.uploads) << crash_at;
      ASSERT_EQ(resumed.totals.upload_bytes, undisturbed.totals.upload_bytes) << crash_at;
      ASSERT_EQ(resumed.totals.download_bytes, undisturbed.totals.download_bytes) << crash_at;
      ASSERT_EQ(resumed.totals.train_samples, undisturbed.totals.train_samples) << crash_at;
      ASSERT_DOUBLE_EQ(resumed.totals.train_seconds, undisturbed.totals.train_seconds) << crash_at;
      ASSERT_EQ(resumed.evaluation, undisturbed.evaluation) << crash_at;
    }
    EXPECT_GT(crash_at, 30);
  }
}

// The next round is begun while a checkpoint is written, and the one after it is not saved before that.
TEST_F(FederationTest, WritesBehind) {
  struct SlowStore : BeginsAgain {
    void save(uint32_t round, const State&) override {
      // The last one is not waited for by any round.
      while (round < 3 && begun <= round) std::this_thread::yield();
      saved.push_back(round);
    }
    void begin_round(uint32_t round, const std::vector<uint32_t>&) override { begun = round; }
    std::atomic<uint32_t> begun = 0;
    std::vector<uint32_t> saved;
  } store;
  options_.writes_behind = true;
  Steps steps;
  FakeServer server(&steps, false);
  FakeTransport transport(&steps);
  Federation federation(
      options_, server, transport, store, [](const Model&) { return Evaluation(); }, [](const Event&) {});
  federation.run();
  EXPECT_THAT(store.saved, ElementsAre(1, 2, 3));
  EXPECT_EQ(server.value(), expected_value(4, 3, 5, 2, false));
}

TEST_F(FederationTest, ACheckpointThatCannotBeWrittenEndsTheRun) {
  struct FullDisk : BeginsAgain {
    void save(uint32_t, const State&) override { throw failure("disk full"); }
  } store;
  for (const bool behind : {false, true}) {
    options_.writes_behind = behind;
    Steps steps;
    FakeServer server(&steps, false);
    FakeTransport transport(&steps);
    Federation federation(
        options_, server, transport, store, [](const Model&) { return Evaluation(); }, [](const Event&) {});
    EXPECT_EQ(error_text([&] { federation.run(); }, Error::Kind::kFailure), "disk full");
  }
}

// Crashing again and again also gets there, as long as each life is enough for one round of kept uploads:
// eleven steps.
TEST_F(FederationTest, ResumesAfterManyCrashes) {
  const int64_t expected = live().value;
  start_afresh();
  int crashes = 0;
  for (;; ++crashes) {
    ASSERT_LT(crashes, 100);
    try {
      EXPECT_EQ(live(11).value, expected);
      break;
    } catch (const std::runtime_error&) {
    }
  }
  EXPECT_GT(crashes, 1);
}

TEST_F(FederationTest, KeptUploadsAreNotAskedForAgain) {
  options_.rounds = 1;
  options_.clients_per_round = 5;
  // The broadcast, an event, the transport, then for each client the transport, accept and an event: two
  // done.
  EXPECT_THROW(live(3 + 2 * 3), std::runtime_error);
  const Outcome resumed = live();
  EXPECT_THAT(resumed.asked.at(1), ElementsAre(0, 1, 2));
  EXPECT_EQ(std::get<ClientFinished>(resumed.events[1]).origin, Origin::kCheckpoint);
  EXPECT_EQ(resumed.value, expected_value(4, 1, 5, 5, false));
}

TEST_F(FederationTest, AFinishedRunDoesNothing) {
  const Outcome first = live();
  const Outcome again = live();
  EXPECT_EQ(again.value, first.value);
  EXPECT_TRUE(again.asked.empty());
  EXPECT_TRUE(again.events.empty());
  EXPECT_EQ(again.evaluation, first.evaluation);
}

TEST_F(FederationTest, ADamagedCheckpointIsAnError) {
  live();
  const fs::path file = checkpoint_ / "server.safetensors";
  const Bytes whole = read_file(file);
  write_file_atomically(file, std::span(whole).first(whole.size() - 1));
  EXPECT_THAT(error_text([&] { live(); }), HasSubstr("server.safetensors"));
  State state = decode(whole, "whole");
  const auto refusal = [&](const char* note) {
    state.metadata["checkpoint"] = note;
    write_state(file, state);
    return error_text([&] { live(); });
  };
  EXPECT_THAT(refusal("{}"), HasSubstr("checkpoint: round: found nothing, expected a count"));
  EXPECT_THAT(refusal("{\"round\": 3}"), HasSubstr("checkpoint: totals: found nothing, expected an object"));
  EXPECT_THAT(refusal("{\"round\": 3, \"totals\": {\"uploads\": -1}}"),
              HasSubstr("checkpoint: totals: uploads: found -1, expected a count"));
}

TEST_F(FederationTest, OnlyTheLastRoundsUploadsStay) {
  live();
  const UploadStore store(checkpoint_);
  EXPECT_FALSE(store.has_round(1));
  EXPECT_FALSE(store.has_round(2));
  EXPECT_TRUE(store.has_round(3));
}

TEST_F(FederationTest, SilentClientsAreLeftOut) {
  options_.clients_per_round = 5;
  options_.rounds = 1;
  silent_ = {1, 3};
  const Outcome outcome = live();
  EXPECT_EQ(outcome.totals.uploads, 3u);
  EXPECT_EQ(outcome.value, 3 + (2 + 1) + (4 + 1) + (6 + 1));
}

TEST_F(FederationTest, NoClientAnswered) {
  silent_ = {0, 1, 2, 3, 4};
  EXPECT_EQ(error_text([&] { live(); }, Error::Kind::kFailure), "no client answered in any of 3 rounds");
  EXPECT_FALSE(fs::exists(checkpoint_ / "server.safetensors"));
}

// A round that nobody answers leaves the model as it is; the others count, also after a restart.
TEST_F(FederationTest, ARoundWithoutAnswersIsLost) {
  options_.clients_per_round = 5;
  options_.rounds = 3;
  silent_round_ = 2;
  const Outcome outcome = live();
  EXPECT_EQ(outcome.totals.uploads, 10u);
  EXPECT_EQ(live().value, outcome.value);
}

TEST_F(FederationTest, TheLastRoundMayBeLost) {
  options_.clients_per_round = 5;
  options_.rounds = 3;
  silent_round_ = 3;
  const Outcome outcome = live();
  EXPECT_EQ(outcome.totals.uploads, 10u);
  EXPECT_EQ(live().value, outcome.value);
}

// One client of five answers: other cohorts of two are tried until it is among them.
TEST_F(FederationTest, AnotherCohortIsChosenWhereAllFailed) {
  begins_again_ = true;
  options_.rounds = 4;
  silent_ = {0, 1, 2, 4};
  EXPECT_EQ(live().totals.uploads, 4u);
  EXPECT_GT(again_.count.size(), 0u);
  EXPECT_NE(sample_clients(4, 1, 100, 10, 1), sample_clients(4, 1, 100, 10, 2));
  EXPECT_EQ(sample_clients(4, 1, 100, 10, 0), sample_clients(4, 1, 100, 10));
}

// Not for ever, and not by a status that a service manager would restart.
TEST_F(FederationTest, TooManyCohortsFailed) {
  begins_again_ = true;
  silent_ = {0, 1, 2, 3, 4};
  EXPECT_THAT(error_text([&] { live(); }, Error::Kind::kInput),
              HasSubstr("no answer from 10 cohorts in a row"));
}

TEST_F(FederationTest, AnUploadThatDoesNotDecode) {
  options_.clients_per_round = 5;
  garbles_ = 2;
  EXPECT_THAT(error_text([&] { live(); }), HasSubstr("round 1: upload of client 2"));
  EXPECT_FALSE(UploadStore(checkpoint_).find(1, 2, "whatever"));
  // Sent again whole, the run goes on.
  garbles_ = -1;
  EXPECT_EQ(live().value, expected_value(4, 3, 5, 5, false));
}

// That is not one that was added up elsewhere.
TEST_F(FederationTest, AnUploadWithoutBytes) {
  options_.clients_per_round = 5;
  garbles_ = 2;
  empties_ = true;
  EXPECT_THAT(error_text([&] { live(); }), HasSubstr("round 1: upload of client 2"));
}

// Uploads of clients in this process are accepted as they are, several together, and counted and stored as
// if they had been sent.
TEST_F(FederationTest, UploadsOfThisProcess) {
  options_.clients_per_round = 5;
  options_.rounds = 2;
  const Outcome sent = live();
  EXPECT_EQ(sent.batches, std::vector<size_t>(10, 1));
  checkpoint_ = folder_ / "in-process";
  in_process_ = true;
  const Outcome here = live();
  EXPECT_EQ(here.batches, (std::vector<size_t>{2, 3, 2, 3}));  // 4 3 | 2 1 0
  EXPECT_EQ(here.value, sent.value);
  EXPECT_EQ(here.totals.upload_bytes, sent.totals.upload_bytes);
  EXPECT_EQ(here.totals.uploads, 10u);
  const auto files = [&](const char* name) {
    return read_file(folder_ / name / "round-00002" / "client-00003.safetensors");
  };
  EXPECT_EQ(files("in-process"), files("checkpoint"));
}

TEST_F(FederationTest, StopKeepsTheUploads) {
  options_.stop = [] { return true; };
  EXPECT_EQ(error_text([&] { live(); }, Error::Kind::kStopped), "stopped");
  options_.stop = [] { return false; };
  const Outcome resumed = live();
  EXPECT_TRUE(resumed.asked.at(1).empty());
  EXPECT_EQ(resumed.value, expected_value(4, 3, 5, 2, false));
}

TEST_F(FederationTest, ReuseTakesAnotherRunsUploads) {
  options_.rounds = 1;
  const Outcome first = live();
  options_.reuse = checkpoint_;
  checkpoint_ = folder_ / "second";
  const Outcome second = live();
  EXPECT_EQ(second.value, first.value);
  EXPECT_TRUE(second.asked.at(1).empty());
  EXPECT_EQ(second.totals.reused_uploads, 2u);
  EXPECT_EQ(std::get<ClientFinished>(second.events[1]).origin, Origin::kReused);

  checkpoint_ = folder_ / "third";
  options_.depends_on = "another recipe\n";
  EXPECT_THAT(error_text([&] { live(); }), HasSubstr("'recipe' there, 'another recipe' here"));
  options_.depends_on = "recipe\n";
  options_.clients_per_round = 5;
  EXPECT_THAT(error_text([&] { live(); }), HasSubstr("holds no upload of client"));
}

// As a network has it: not all are there, and a round that was begun goes on with those it was begun with.
TEST_F(FederationTest, ChoosesFromThoseWhoAreThere) {
  struct Store : FolderStore {
    using FolderStore::FolderStore;
    std::optional<std::vector<uint32_t>> chosen(uint32_t round) const override {
      return begun.contains(round) ? std::optional(begun.at(round)) : std::nullopt;
    }
    void begin_round(uint32_t round, const std::vector<uint32_t>& clients) override {
      begun[round] = clients;
    }
    std::map<uint32_t, std::vector<uint32_t>> begun;
  };
  struct Away : FakeTransport {
    using FakeTransport::FakeTransport;
    std::vector<uint32_t> present(uint32_t, uint32_t) override { return there; }
    std::vector<uint32_t> there = {1, 4};
  };
  Steps steps;
  FakeServer server(&steps, false);
  Away transport(&steps);
  Store store(checkpoint_);
  store.begun[2] = {0, 3};
  options_.clients_per_round = 3;
  const auto live_on = [&] {
    Federation(
        options_, server, transport, store, [](const Model&) { return Evaluation(); }, [](const Event&) {})
        .run();
  };
  live_on();
  EXPECT_THAT(transport.asked.at(1), ElementsAre(1, 4));
  EXPECT_THAT(transport.asked.at(2), ElementsAre(0, 3));
  EXPECT_THAT(store.begun.at(3), ElementsAre(1, 4));
  start_afresh();
  transport.there.clear();
  store.begun.clear();
  EXPECT_EQ(error_text(live_on, Error::Kind::kStopped), "stopped");
}

TEST(SampleClientsTest, AscendingWithoutReplacement) {
  for (uint32_t round = 0; round < 200; ++round) {
    const std::vector<uint32_t> chosen = sample_clients(1, round, 20, 7);
    ASSERT_EQ(chosen.size(), 7u);
    EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
    EXPECT_EQ(std::set<uint32_t>(chosen.begin(), chosen.end()).size(), 7u);
    EXPECT_LT(chosen.back(), 20u);
  }
  EXPECT_THAT(sample_clients(1, 1, 4, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(sample_clients(1, 1, 1, 1), ElementsAre(0));
}

// Each client, and each pair, as often as any other, within five standard deviations.
TEST(SampleClientsTest, Uniform) {
  constexpr int kRounds = 6000;
  constexpr uint32_t kClients = 6;
  std::map<uint32_t, int> single;
  std::map<std::pair<uint32_t, uint32_t>, int> pairs;
  for (uint32_t round = 1; round <= kRounds; ++round) {
    const std::vector<uint32_t> chosen = sample_clients(3, round, kClients, 2);
    ++single[chosen[0]];
    ++single[chosen[1]];
    ++pairs[{chosen[0], chosen[1]}];
  }
  const auto expect_near = [](int count, double probability) {
    EXPECT_NEAR(count, kRounds * probability, 5 * std::sqrt(kRounds * probability * (1 - probability)));
  };
  ASSERT_EQ(single.size(), 6u);
  ASSERT_EQ(pairs.size(), 15u);
  for (const auto& [client, count] : single) expect_near(count, 2.0 / 6);
  for (const auto& [pair, count] : pairs) expect_near(count, 1.0 / 15);
}

TEST(SampleClientsTest, DependsOnSeedAndRoundAlone) {
  EXPECT_EQ(sample_clients(1, 2, 100, 10), sample_clients(1, 2, 100, 10));
  EXPECT_NE(sample_clients(1, 2, 100, 10), sample_clients(1, 3, 100, 10));
  EXPECT_NE(sample_clients(1, 2, 100, 10), sample_clients(2, 2, 100, 10));
}

}  // namespace
}  // namespace bitfed
