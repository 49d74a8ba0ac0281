#include "bitfed/federated/run_federation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/byte_io.h"
#include "bitfed/federated/client_round.h"
#include "bitfed/federated/client_states.h"
#include "bitfed/federated/folder_store.h"
#include "bitfed/model/state.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kRecipe = R"(
name = "tiny"
rounds = 2
[data]
partition = { kind = "column" }
[model]
name = "mlp"
hidden = [4]
[method]
name = "fed-bin-mlp"
)";

// Two persons; the class is the sign of the first column.
Dataset table(size_t samples) {
  Dataset data;
  data.name = "made here";
  data.columns = {"a", "b"};
  data.class_names = {"no", "yes"};
  data.group_names = {"ann", "bob"};
  for (size_t i = 0; i < samples; ++i) {
    data.labels.push_back(i % 3 == 0);
    data.values.push_back(i % 3 == 0 ? 1.5f : -1.0f);
    data.values.push_back(static_cast<float>(i % 7));
    data.groups.push_back(i % 2);
  }
  return data;
}

// One client after the other, the last first.
class Loop : public Transport {
 public:
  Loop(const Experiment& experiment, ClientStates& states, bool is_local)
      : experiment_(experiment),
        states_(states),
        is_local_(is_local),
        half_(experiment.method->make_client()) {}

  void run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                 const std::function<void(ClientResult)>& receive) override {
    const State decoded = decode(broadcast, "broadcast");
    for (auto client = clients.rbegin(); client != clients.rend(); ++client) {
      const Dataset samples = subset(experiment_.train, experiment_.partition[*client]);
      ClientOutcome outcome = run_client({*half_, decoded, experiment_.seed, round, {}},
                                         {*client, samples, states_.of(*client), [](double) {}});
      states_.put(*client, outcome.kept);
      receive(std::move(outcome.result));
    }
  }
  std::optional<LocalClients> local_clients() const override {
    if (!is_local_) return std::nullopt;
    return LocalClients{*half_, states_};
  }

 private:
  const Experiment& experiment_;
  ClientStates& states_;
  bool is_local_;
  std::unique_ptr<ClientHalf> half_;
};

class RunFederationTest : public testing::Test {
 protected:
  RunSummary run(const std::string& name, bool is_local, const fs::path& reuse = {}) {
    Experiment experiment = read_experiment(Config::parse(kRecipe, "recipe"), {table(60), table(20)}, "run",
                                            ClientsAre::kSimulated);
    experiment.device = device_;
    ClientStates states(folder_ / name / "clients", 2);
    Loop transport(experiment, states, is_local);
    FolderStore store(folder_ / name / "checkpoint");
    create_folders(folder_ / name);
    ThreadPool pool(1);
    events_.clear();
    return run_federation(experiment, transport, store,
                          {.pool = pool,
                           .events =
                               [this](const Event& event) {
                                 events_.emplace_back(kind_of(event));
                                 if (events_.size() == events_until_crash_) throw std::runtime_error("crash");
                               },
                           .folder = folder_ / name,
                           .reuse = reuse,
                           .checkpoint_seconds = 0,
                           .version = "1.2.3"});
  }

  TemporaryFolder folder_;
  std::string device_;
  size_t events_until_crash_ = SIZE_MAX;
  std::vector<std::string> events_;
};

TEST_F(RunFederationTest, WritesModelAndSummary) {
  const RunSummary summary = run("run", true);
  EXPECT_EQ(read_summary(folder_ / "run"), summary);
  EXPECT_EQ(read_state(folder_ / "run/model.safetensors").sha256(), summary.model_sha256);
  EXPECT_EQ(summary.version, "1.2.3");
  EXPECT_EQ(summary.method, "fed-bin-mlp");
  EXPECT_EQ(summary.dataset, "made here");
  EXPECT_GT(summary.wall_seconds.value(), 0);
  // Round 0 is this method's preparation.
  const std::string done = "client-finished";
  EXPECT_THAT(events_,
              ElementsAre("round-started", done, done, "round-finished", "round-started", done, done,
                          "round-finished", "round-started", done, done, "round-finished", "run-finished"));
}

TEST_F(RunFederationTest, ARunOnTwoDevicesNamesBoth) {
  EXPECT_EQ(run("cpu", true).device, std::nullopt);
  device_ = "a GPU";
  EXPECT_EQ(run("gpu", true).device, "a GPU");
  events_until_crash_ = 9;  // in the second of its rounds
  EXPECT_THROW(run("both", true), std::runtime_error);
  device_ = "";
  events_until_crash_ = 4;  // at the end of the last one, which is saved
  EXPECT_THROW(run("both", true), std::runtime_error);
  events_until_crash_ = SIZE_MAX;
  device_ = "another GPU";  // which finds nothing left to train
  EXPECT_EQ(run("both", true).device, "a GPU; CPU");
}

// Models that clients keep are evaluated where the clients are in this process, and stay with them elsewhere.
TEST_F(RunFederationTest, OwnModelsAreEvaluatedWhereTheyAre) {
  const RunSummary local = run("local", true);
  ASSERT_EQ(local.client_results.size(), 2u);
  EXPECT_EQ(local.client_results[1].name, "bob");
  EXPECT_EQ(local.client_results[1].test_samples, 10u);
  EXPECT_TRUE(local.local_accuracy_mean);
  const RunSummary elsewhere = run("elsewhere", false);
  EXPECT_EQ(elsewhere.model_sha256, local.model_sha256);
  EXPECT_EQ(elsewhere.accuracy, local.accuracy);
  EXPECT_THAT(elsewhere.client_results, IsEmpty());
  EXPECT_FALSE(elsewhere.local_accuracy_mean);
}

TEST_F(RunFederationTest, AResumedRunDoesWhatIsLeft) {
  const RunSummary first = run("run", true);
  fs::remove(folder_ / "run/summary.json");
  const RunSummary second = run("run", true);
  EXPECT_EQ(second.model_sha256, first.model_sha256);
  EXPECT_THAT(events_, ElementsAre("run-finished"));
}

TEST_F(RunFederationTest, UploadsOfAnotherRun) {
  EXPECT_THAT(error_text([&] { run("run", true, folder_ / "nowhere"); }),
              testing::HasSubstr("nowhere/checkpoint: holds no upload of client 0"));
}

}  // namespace
}  // namespace bitfed
