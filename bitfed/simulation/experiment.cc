#include "bitfed/simulation/experiment.h"

#include <chrono>

#include "bitfed/base/byte_io.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/federated/federation.h"
#include "bitfed/federated/folder_store.h"
#include "bitfed/federated/summary.h"
#include "bitfed/simulation/in_process_transport.h"
#include "bitfed/simulation/personal_evaluation.h"

namespace bitfed {
namespace fs = std::filesystem;

ExperimentResult run_experiment(const Config& recipe, const ExperimentOptions& options,
                                const EventSink& events) {
  const auto start = std::chrono::steady_clock::now();
  events({{"event", "loading"}});
  const Experiment experiment =
      read_experiment(recipe, options.default_name, options.data_dir, ClientsAre::kSimulated);
  const fs::path out = options.out.empty() ? fs::path("runs") / experiment.name : options.out;
  RunFolderWriter folder(out, experiment.recipe, options.existing);
  const fs::path summary_file = out / "summary.json";
  if (folder.is_finished()) return {out, Event::parse(read_text_file(summary_file))};

  ThreadPool pool(options.threads);
  const EventSink sink = [&](const Event& event) {
    if (event["event"] != "client-progress") folder.log(event);
    events(event);
  };
  sink(started_event(experiment, recipe));
  const std::unique_ptr<ClientHalf> client = experiment.method->make_client();
  const std::unique_ptr<ServerHalf> server = experiment.method->make_server();
  ClientStates states(folder.checkpoint() / "clients", experiment.partition.size());
  const auto transport =
      make_in_process_transport({experiment.seed, experiment.dropout, options.stop}, *client,
                                experiment.train, experiment.partition, states, pool, sink);
  const PersonalEvaluation personal(experiment.train, experiment.partition,
                                    experiment.partition_spec.kind == "column", experiment.evaluation.test);
  FederationOptions federated;
  federated.seed = experiment.seed;
  federated.rounds = experiment.rounds;
  federated.clients = experiment.clients;
  federated.clients_per_round = experiment.clients_per_round;
  federated.reuse = options.reuse.empty() ? fs::path() : options.reuse / "checkpoint";
  federated.depends_on = experiment.depends_on;
  federated.stop = options.stop;
  federated.select_by_validation = experiment.select_by_validation;
  FolderStore store(folder.checkpoint());
  Federation federation(
      federated, *server, *transport, store,
      [&](const Model& model) {
        Event judged = evaluate_model(model, experiment.evaluation, pool);
        judged["local_accuracy_mean"] = personal.mean_accuracy(*client, states, pool);
        return judged;
      },
      sink);
  federation.run();

  write_state(out / "model.safetensors", model_state(federation.model(), experiment));
  Event summary = summarise(experiment, recipe, *server, federation, pool, options.version);
  summary["client_results"] = personal.table(federation.model(), *client, states, pool);
  // Of this process alone: what ran before an interruption is not in it.
  summary["wall_seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  write_file_atomically(summary_file, summary.dump(1) + "\n");
  sink({{"event", "run-finished"},
        {"accuracy", summary["accuracy"]},
        {"model_sha256", summary["model_sha256"]}});
  return {out, summary};
}

}  // namespace bitfed
