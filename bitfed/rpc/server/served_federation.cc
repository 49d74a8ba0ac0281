#include "bitfed/rpc/server/served_federation.h"

#include <sys/resource.h>

#include <chrono>
#include <mutex>

#include "bitfed/base/byte_io.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/federated/federation.h"
#include "bitfed/run/run_folder_writer.h"
#include "bitfed/federated/summary.h"
#include "bitfed/rpc/server/coordinator.h"
#include "bitfed/rpc/server/federation_store.h"
#include "bitfed/rpc/server/grpc_server.h"
#include "bitfed/rpc/server/http_server.h"
#include "bitfed/rpc/server/live_status.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

CoordinatorOptions coordinator_options(const Experiment& experiment, const ServeOptions& options) {
  CoordinatorOptions result;
  result.clients = experiment.clients;
  result.policy = experiment.policy;
  result.recipe = experiment.recipe;
  result.seed = experiment.seed;
  result.prototype = subset(experiment.train, {});
  result.most_update_bytes = options.most_update_bytes;
  result.stop = options.stop;
  return result;
}

FederationOptions federation_options(const Experiment& experiment, const ServeOptions& options) {
  FederationOptions result;
  result.seed = experiment.seed;
  result.rounds = experiment.rounds;
  result.clients = experiment.clients;
  result.clients_per_round = experiment.clients_per_round;
  result.depends_on = experiment.depends_on;
  result.stop = options.stop;
  result.select_by_validation = experiment.select_by_validation;
  // What clients were told must hold: every update and every round is durable.
  result.checkpoint_seconds = 0;
  result.keep_seconds = 0;
  return result;
}

// A connection is a file, and the usual limit is meant for programs that hold few: where it is reached,
// nobody else can connect. The system's own limit stays.
void allow_many_connections() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

HttpResponse answer(const std::string& path, const Event& status, const ServeOptions& options) {
  if (path == "/healthz") return {200, "text/plain; charset=utf-8", "ok\n"};
  if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", prometheus_text(status)};
  if (path == "/status.json") return {200, "application/json", status.dump(1) + "\n"};
  if (path == "/" && options.page) return {200, "text/html; charset=utf-8", options.page(status)};
  return {404, "text/plain; charset=utf-8", "try /, /metrics, /healthz or /status.json\n"};
}

}  // namespace

Event serve_federation(const Config& recipe, const ServeOptions& options, const EventSink& events) {
  const auto start = std::chrono::steady_clock::now();
  events({{"event", "loading"}});
  const Experiment experiment =
      read_experiment(recipe, options.default_name, options.data_dir, ClientsAre::kReal);
  RunFolderWriter folder(options.state, experiment.recipe, RunFolderWriter::Existing::kResume);
  FederationStore store(options.state / "federation.sqlite");

  std::mutex sink_mutex;
  LiveStatus live;
  const EventSink sink = [&](const Event& event) {
    const std::lock_guard lock(sink_mutex);
    folder.log(event);
    live.hear(event);
    events(event);
  };
  allow_many_connections();
  Coordinator coordinator(coordinator_options(experiment, options), store, sink);
  const auto network = make_grpc_server(options.listen, options.trust, coordinator);
  const auto http =
      options.http.empty() ? nullptr : make_http_server(options.http, [&](const std::string& path) {
        return answer(path, live.snapshot(coordinator.status()), options);
      });
  Event started = started_event(experiment, recipe);
  started["port"] = network->port();
  if (http != nullptr) started["http_port"] = http->port();
  started["federation"] = store.federation();
  sink(started);

  const fs::path summary_file = options.state / "summary.json";
  const fs::path model_file = options.state / "model.safetensors";
  Event summary;
  if (folder.is_finished()) {
    summary = Event::parse(read_text_file(summary_file));
  } else {
    ThreadPool pool(options.threads);
    const std::unique_ptr<ServerHalf> server = experiment.method->make_server();
    Federation federation(
        federation_options(experiment, options), *server, coordinator, store,
        [&](const Model& model) {
          Event judged = evaluate_model(model, experiment.evaluation, pool);
          judged["local_accuracy_mean"] = nullptr;  // personal models stay with their clients
          return judged;
        },
        sink);
    federation.run();
    write_state(model_file, model_state(federation.model(), experiment));
    summary = summarise(experiment, recipe, *server, federation, pool, options.version);
    summary["client_results"] = Event::array();
    summary["wall_seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    write_file_atomically(summary_file, summary.dump(1) + "\n");
    sink({{"event", "run-finished"},
          {"accuracy", summary["accuracy"]},
          {"model_sha256", summary["model_sha256"]}});
  }
  coordinator.hand_out(experiment.rounds, read_file(model_file), options.linger_seconds);
  return summary;
}

}  // namespace bitfed
