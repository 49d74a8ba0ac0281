#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/base/stopwatch.h"
#include "bitfed/federated/evaluation.h"
#include "bitfed/federated/method.h"
#include "bitfed/federated/privacy/differential_privacy.h"
#include "bitfed/federated/round_store.h"
#include "bitfed/federated/transport.h"
#include "bitfed/run/events.h"

namespace bitfed {

struct FederationOptions {
  uint64_t seed = 0;
  uint32_t rounds = 1;
  uint32_t clients = 1;
  uint32_t clients_per_round = 1;
  std::vector<uint32_t>
      without;                  // clients that take part in no round, ascending; drawn ones are not replaced
  std::filesystem::path reuse;  // another run's checkpoint folder to take uploads from; empty: none
  // What every upload depends on besides round, client and broadcast: recipe, seed, data.
  std::string depends_on;
  std::function<bool()> stop;  // the user wants to stop
  // Which round's model the run ends with: the last, or the one that was best on validation data.
  bool select_by_validation = false;
  uint32_t evaluate_every = 1;  // rounds; the last one is always evaluated
  // With differential privacy rounds end at its max_epsilon, and where the server adds the noise each client
  // is drawn by itself.
  std::optional<DifferentialPrivacy> privacy;
  bool draws_secretly = false;  // who takes part in a private round: not by the seed, which is public
  // Repeating a short round is cheaper than making it durable. The work, in seconds, that a crash may cost,
  // and the training time from which an upload of one of many rounds is stored.
  double checkpoint_seconds = 1;
  // A checkpoint is written while the next round is run. Only where all that happens after it can be repeated
  // from the one before.
  bool writes_behind = false;
  double keep_seconds = 1;
  // A round is evaluated and saved while the next one trains, on a thread of its own: for devices that leave
  // the processors idle. `evaluate` and `events` must allow it.
  bool ends_beside = false;
  std::string device = {};  // that networks are trained on; empty: the CPU
};

// Counted over the whole run, interruptions included.
struct FederationTotals {
  uint64_t uploads = 0;
  uint64_t upload_bytes = 0;
  uint64_t download_bytes = 0;
  uint64_t train_samples = 0;  // repetitions counted
  double train_seconds = 0;    // see ClientResult
  double aggregation_seconds = 0;
  double evaluation_seconds = 0;
  uint64_t reused_uploads = 0;  // taken from another run
  // Of the uploads and bytes above, those of the preparation before the first round of training.
  uint64_t preparation_uploads = 0;
  uint64_t preparation_upload_bytes = 0;
  uint64_t preparation_download_bytes = 0;

  // In the order of checkpoints.
  static void fields(auto& self, auto& field) {
    field("uploads", self.uploads);
    field("upload_bytes", self.upload_bytes);
    field("download_bytes", self.download_bytes);
    field("train_samples", self.train_samples);
    field("train_seconds", self.train_seconds);
    field("aggregation_seconds", self.aggregation_seconds);
    field("evaluation_seconds", self.evaluation_seconds);
    field("reused_uploads", self.reused_uploads);
    field("preparation_uploads", self.preparation_uploads);
    field("preparation_upload_bytes", self.preparation_upload_bytes);
    field("preparation_download_bytes", self.preparation_download_bytes);
  }
};

// Evaluates the model after a round.
using Evaluate = std::function<Evaluation(const Model& model)>;

// The round loop: sampling, checkpoints and resuming, for every method. After a crash at any point, a new
// Federation on the same store continues and ends with the same model.
class Federation {
 public:
  Federation(const FederationOptions& options, ServerHalf& server, Transport& transport, RoundStore& store,
             Evaluate evaluate, EventSink events);

  // Runs the rounds that are left. Error::Kind::kStopped if the user stopped it.
  void run();

  const FederationTotals& totals() const { return totals_; }
  // The model that the run ends with, its evaluation, and the round after which it was taken.
  const Model& model() const { return *model_; }
  const Evaluation& evaluation() const { return selected_.evaluation; }
  uint32_t model_round() const { return selected_.round; }
  // With differential privacy: the rounds whose noised sums were released, interruptions included.
  uint64_t private_rounds() const { return private_rounds_; }
  // What networks were trained on, interruptions included, in the order of use: "" is the CPU.
  const std::vector<std::string>& devices() const { return devices_; }

 private:
  void run_round(uint32_t round);
  void begin_again(uint32_t round, uint64_t download_bytes);
  void lose(uint32_t round, uint64_t download_bytes);
  bool open_sum(uint32_t round, uint64_t download_bytes);
  bool is_last(uint32_t round) const;
  bool is_evaluated(uint32_t round) const;
  std::vector<uint32_t> choose(uint32_t round);
  std::vector<uint32_t> draw_each(uint32_t round, const std::vector<uint32_t>& present) const;
  using Text = std::function<const std::string&()>;  // made when it is asked for
  void receive(uint32_t round, ClientResult result, const Text& depends_on, Origin origin);
  void accept(uint32_t round, std::vector<ClientResult> results, const Text& depends_on, Origin origin);
  // The end of a round: what comes after its new model. What is empty is taken as it is at present.
  struct Ending {
    RoundFinished event;
    bool evaluates = false;
    bool saves = false;
    std::function<std::unique_ptr<Model>()> model = {};  // empty: the server half's
    std::optional<State> server = {};
    std::optional<FederationTotals> totals = {};
    std::optional<std::vector<uint32_t>> client_states = {};
    std::optional<uint64_t> private_rounds = {};
  };
  double end(Ending* ending);
  void end_beside(Ending ending);
  void wait_for_ending();
  Scores evaluate(uint32_t round, Ending* ending);
  void save(uint32_t round, Ending* ending);
  void finish_save();
  uint32_t restore();

  FederationOptions options_;
  ServerHalf& server_;
  Transport& transport_;
  RoundStore& store_;
  Evaluate evaluate_;
  EventSink events_;
  FederationTotals totals_;
  std::vector<std::string> devices_;
  struct {
    uint32_t round = 0;
    Evaluation evaluation;
    Bytes server;  // its state after the round; empty where the last round's model is taken
  } selected_;
  std::vector<uint32_t> answered_;     // the clients of this round, in the order of arrival
  std::vector<ClientResult> arrived_;  // that wait for the others of their batch
  std::unique_ptr<Model> model_;
  Stopwatch since_save_;
  std::future<void> saving_;         // of the last checkpoint
  std::optional<ReleaseCost> cost_;  // of a private round
  uint64_t private_rounds_ = 0;
  uint64_t max_private_rounds_ = UINT64_MAX;  // that are within max_epsilon
  // Last, so that it is waited for before anything it uses is gone. Its value: see end().
  std::future<double> ending_;
};

// The round after which a checkpoint was saved; 0: that of the preparation.
uint32_t checkpoint_round(const State& checkpoint);

// The clients of a round: `count` of `clients`, ascending, drawn without replacement; others for each
// attempt.
std::vector<uint32_t> sample_clients(uint64_t seed, uint32_t round, uint32_t clients, uint32_t count,
                                     uint32_t attempt = 0);

}  // namespace bitfed
