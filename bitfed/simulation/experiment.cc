#include "bitfed/simulation/experiment.h"

#include <mutex>
#include <optional>

#include "bitfed/base/byte_io.h"
#include "bitfed/data/formats/sample_sheet.h"
#include "bitfed/federated/client_states.h"
#include "bitfed/federated/folder_store.h"
#include "bitfed/federated/run_federation.h"
#include "bitfed/federated/transport.h"
#include "bitfed/simulation/in_process_transport.h"
#ifdef BITFED_SECURE
#include "bitfed/secure/masking_transport.h"
#endif

namespace bitfed {
namespace {

namespace fs = std::filesystem;

ExperimentResult simulate(const Experiment& experiment, const ExperimentOptions& options,
                          const EventSink& events, const Stopwatch& clock) {
  const fs::path out = options.out.empty() ? fs::path("runs") / experiment.name : options.out;
  RunFolderWriter folder(out, experiment.recipe, options.existing);
  folder.check_data(experiment.fingerprint);
  if (folder.is_finished()) return {out, read_summary(out)};

  std::mutex mutex;
  const EventSink sink = [&](const Event& event) {
    const std::lock_guard lock(mutex);
    folder.log(event);
    events(event);
  };
  sink(started_event(experiment));
  if (!experiment.train.is_table())
    write_file_atomically(out / "samples.png", encode_png(sample_sheet(experiment.train)));
  ThreadPool pool(options.threads);
  const std::unique_ptr<ClientHalf> client = experiment.method->make_client();
  ClientStates states(folder.checkpoint() / "clients", experiment.partition.size());
  auto transport = options.transport ? options.transport(experiment, states, sink)
                                     : make_in_process_transport(
                                           {experiment.seed, experiment.dropout, options.stop}, *client,
                                           experiment.train, experiment.partition, states, pool, sink);
#ifdef BITFED_SECURE
  if (experiment.privacy.secure_aggregation) {
    transport =
        make_masking_transport(std::move(transport), experiment.seed, experiment.privacy.min_survivors, pool);
  }
#endif
  FolderStore store(folder.checkpoint());
  // A device trains: the processors are free for the rest. Other processes are asked by one thread alone.
  std::optional<ThreadPool> beside;
  if (client->cohort() > 1 && !options.evaluate_elsewhere) beside.emplace(options.threads);
  const RunHooks hooks{.pool = pool,
                       .beside = beside ? &*beside : nullptr,
                       .evaluate_elsewhere = options.evaluate_elsewhere,
                       .events = sink,
                       .folder = out,
                       .reuse = options.reuse,
                       .stop = options.stop,
                       .version = options.version,
                       .rank_hosts = options.rank_hosts,
                       .rank_device = options.rank_device,
                       .clock = clock};
  return {out, run_federation(experiment, *transport, store, hooks)};
}

}  // namespace

ExperimentResult run_experiment(const Config& recipe, const ExperimentOptions& options,
                                const EventSink& events) {
  const Stopwatch clock;
  events(Loading{});
  const Experiment experiment = load_experiment(recipe, options.data_dir, options.default_name,
                                                ClientsAre::kSimulated, options.trainers.get());
  return simulate(experiment, options, events, clock);
}

ExperimentResult run_experiment(const Experiment& experiment, const ExperimentOptions& options,
                                const EventSink& events) {
  return simulate(experiment, options, events, Stopwatch());
}

}  // namespace bitfed
