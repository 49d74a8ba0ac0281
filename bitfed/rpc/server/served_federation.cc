#include "bitfed/rpc/server/served_federation.h"

#include <sys/resource.h>

#include <mutex>

#include "bitfed/base/byte_io.h"
#include "bitfed/federated/run_federation.h"
#include "bitfed/rpc/security/certificate_identity.h"
#include "bitfed/rpc/server/admin_socket.h"
#include "bitfed/rpc/server/coordinator.h"
#include "bitfed/rpc/server/federation_store.h"
#include "bitfed/rpc/server/grpc_server.h"
#include "bitfed/rpc/server/http_server.h"
#include "bitfed/rpc/server/live_status.h"
#include "bitfed/rpc/server/operator_acts.h"
#include "bitfed/rpc/server/renewal_mailbox.h"
#include "bitfed/run/run_folder_writer.h"

namespace bitfed {
namespace {

CoordinatorOptions coordinator_options(const Experiment& experiment, const ServeOptions& options) {
  CoordinatorOptions result;
  result.clients = experiment.clients;
  result.policy = experiment.policy;
  result.privacy = experiment.privacy;
  // As the federation was begun: clients that are there compare it, and a key may have been renamed
  // meanwhile.
  result.recipe = read_text_file(options.state / "recipe.toml");
  result.seed = experiment.seed;
  result.prototype = subset(experiment.train, {});
  result.max_update_bytes = options.max_update_bytes;
  result.raw_upload_bytes = experiment.method->make_server()->raw_upload_bytes().value_or(0);
  result.stop = options.stop;
  if (!options.trust.plaintext) {
    if (experiment.privacy.secure_aggregation) {
      result.identity = make_certificate_identity(
          {options.trust.client_ca, options.trust.certificate, options.trust.key, false});
    }
    result.renew = [mailbox = RenewalMailbox(options.state / "renewals")](const std::string& name,
                                                                          const std::string& request) {
      return mailbox.ask(name, request);
    };
  }
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

// Alive: the process works. Ready: the federation goes on.
HttpResponse answer(const std::string& path, const Coordinator& coordinator,
                    const std::function<FederationStatus()>& take_snapshot, const ServeOptions& options) {
  if (path == "/healthz") {
    const bool alive = coordinator.is_alive();
    return {alive ? 200 : 503, "text/plain; charset=utf-8", alive ? "ok\n" : "stuck\n"};
  }
  const FederationStatus status = take_snapshot();
  if (path == "/readyz") {
    const std::string why = not_ready(status);
    return {why.empty() ? 200 : 503, "text/plain; charset=utf-8", (why.empty() ? "ok" : why) + "\n"};
  }
  if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", prometheus_text(status)};
  if (path == "/status.json") return {200, "application/json", status_text(status)};
  if (path == "/" && options.page) return {200, "text/html; charset=utf-8", options.page(status)};
  return {404, "text/plain; charset=utf-8", "try /, /metrics, /healthz, /readyz or /status.json\n"};
}

}  // namespace

RunSummary serve_federation(const Config& recipe, const ServeOptions& options, const EventSink& events) {
  const Stopwatch clock;
  events(Loading{});
  const Experiment experiment =
      load_experiment(recipe, options.data_dir, options.default_name, ClientsAre::kReal);
  RunFolderWriter folder(options.state, experiment.recipe, RunFolderWriter::Existing::kResume);
  FederationStore store(options.state / "federation.sqlite");

  std::mutex sink_mutex;
  LiveStatus live;
  const EventSink sink = [&](const Event& event) {
    const std::lock_guard lock(sink_mutex);
    folder.log(event);
    live.receive(event);
    events(event);
  };
  allow_many_connections();
  Coordinator coordinator(coordinator_options(experiment, options), store, sink);
  const auto snapshot = [&] {
    FederationStatus status = live.snapshot(coordinator.status());
    std::error_code code;
    const auto space = std::filesystem::space(options.state, code);
    if (!code) status.disk_free_bytes = space.available;
    return status;
  };
  AuditLog audit(options.state / "audit.jsonl");
  OperatorActs acts(coordinator, store, audit, [&] { return status_text(snapshot()); });
  const auto network = make_grpc_server(
      options.listen, options.trust, coordinator,
      [&](const std::string& line, const std::string& name) { return acts.answer(line, {.name = name}); });
  const auto http =
      options.http.empty() ? nullptr : make_http_server(options.http, [&](const std::string& path) {
        return answer(path, coordinator, snapshot, options);
      });
  const auto admin = make_admin_socket(
      options.state / "admin.sock",
      [&](const std::string& line, unsigned user) { return acts.answer(line, {.user = user}); });
  RunStarted started = started_event(experiment);
  started.port = network->port();
  if (http != nullptr) started.http_port = http->port();
  started.federation = store.federation();
  sink(started);

  RunSummary summary;
  if (folder.is_finished()) {
    summary = read_summary(options.state);
  } else {
    ThreadPool pool(options.threads);
    // Clients rely on what they were told: every update and every round is durable.
    summary = run_federation(experiment, coordinator, store,
                             {.pool = pool,
                              .events = sink,
                              .folder = options.state,
                              .checkpoint_seconds = 0,
                              .stop = options.stop,
                              .version = options.version,
                              .clock = clock});
  }
  coordinator.hand_out(experiment.rounds, read_file(options.state / "model.safetensors"),
                       options.linger_seconds);
  return summary;
}

}  // namespace bitfed
