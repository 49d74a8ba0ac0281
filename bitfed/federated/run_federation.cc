#include "bitfed/federated/run_federation.h"

#include <set>

#include "bitfed/base/error.h"
#include "bitfed/federated/federation.h"
#include "bitfed/federated/personal_evaluation.h"
#include "bitfed/federated/summary.h"
#include "bitfed/zoo/model_file.h"

namespace bitfed {
namespace {

FederationOptions options_of(const Experiment& experiment, const RunHooks& hooks) {
  FederationOptions options;
  options.seed = experiment.seed;
  options.rounds = experiment.rounds;
  options.clients = experiment.clients;
  options.clients_per_round = experiment.clients_per_round;
  options.without = experiment.without;
  if (!hooks.reuse.empty()) options.reuse = hooks.reuse / "checkpoint";
  options.depends_on = experiment.depends_on;
  options.stop = hooks.stop;
  options.select_by_validation = experiment.select_by_validation;
  options.evaluate_every = experiment.evaluate_every;
  options.privacy = experiment.differential_privacy;
  options.draws_secretly = experiment.served;
  options.writes_behind = !experiment.served;
  options.checkpoint_seconds = hooks.checkpoint_seconds;
  options.keep_seconds = hooks.checkpoint_seconds;
  options.ends_beside = hooks.beside != nullptr;
  options.device = experiment.device;
  return options;
}

// The models that clients keep for themselves. Where the clients are elsewhere, their models stay with them
// and there is nothing to evaluate.
class OwnModels {
 public:
  OwnModels(const Experiment& experiment, const Transport& transport, ThreadPool& pool)
      : local_(transport.local_clients()), pool_(pool) {
    if (!local_) return;
    personal_.emplace(experiment.train, experiment.partition, experiment.partition_spec.kind == "column",
                      experiment.evaluation.test);
  }

  std::optional<double> mean_accuracy() {
    return local_ ? personal_->mean_accuracy(local_->half, local_->states, pool_) : std::nullopt;
  }
  std::vector<ClientAccuracy> table(const Model& global) {
    if (!local_) return {};
    return personal_->table(global, local_->half, local_->states, pool_);
  }

 private:
  std::optional<LocalClients> local_;
  std::optional<PersonalEvaluation> personal_;
  ThreadPool& pool_;
};

void add_ranks(const std::vector<std::string>& rank_hosts, RunSummary* summary) {
  if (rank_hosts.empty()) return;
  summary->ranks = rank_hosts.size();
  const std::set<std::string> hosts(rank_hosts.begin(), rank_hosts.end());
  summary->hosts = std::vector<std::string>(hosts.begin(), hosts.end());
}

}  // namespace

RunSummary run_federation(const Experiment& experiment, Transport& transport, RoundStore& store,
                          const RunHooks& hooks) {
  const std::unique_ptr<ServerHalf> server = experiment.method->make_server();
  server->use(hooks.pool);
  if (server->masked_sum() != nullptr && !transport.can_mask()) {
    throw input_error(
        "privacy.secure_aggregation: found true, expected false: this program, or this way of running it, "
        "cannot mask updates (it needs OpenSSL)");
  }
  OwnModels own(experiment, transport, hooks.pool);
  const auto evaluate = [&](const Model& model) {
    Evaluation evaluation = hooks.evaluate_elsewhere
                                ? hooks.evaluate_elsewhere(model)
                                : evaluate_model(model, experiment.evaluation,
                                                 hooks.beside != nullptr ? *hooks.beside : hooks.pool);
    if (hooks.beside == nullptr) evaluation.scores.local_accuracy_mean = own.mean_accuracy();
    return evaluation;
  };
  Federation federation(options_of(experiment, hooks), *server, transport, store, evaluate, hooks.events);
  federation.run();

  write_state(hooks.folder / "model.safetensors",
              model_file_state(federation.model(), experiment.name, experiment.train.class_names,
                               experiment.data, {experiment.train.columns, experiment.trained_on}));
  RunSummary summary = summarise(experiment, *server, federation, hooks.pool);
  summary.client_results = own.table(federation.model());
  summary.version = hooks.version;
  add_ranks(hooks.rank_hosts, &summary);
  if (!hooks.rank_device.empty()) summary.device = hooks.rank_device;
  // Of this process alone: what ran before an interruption is not in it.
  summary.wall_seconds = hooks.clock.seconds();
  write_summary(hooks.folder, summary);
  hooks.events(RunFinished{.accuracy = summary.accuracy, .model_sha256 = summary.model_sha256});
  return summary;
}

}  // namespace bitfed
