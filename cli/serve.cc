#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <memory>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/pages/live_page.h"
#include "bitfed/report/pages/page.h"
#include "bitfed/rpc/server/served_federation.h"
#include "bitfed/run/run_folder.h"
#include "cli/commands.h"
#include "cli/stop.h"

namespace bitfed::cli {
namespace {

struct ServeArguments {
  std::string recipe;
  std::vector<std::string> overrides;
  ServeOptions options;
  std::string certs;
  bool json = false;
  bool quiet = false;
};

// One line for what an operator wants to see; everything is in events.jsonl.
std::string line_of(const RunStarted& event) {
  std::string line = fmt::format("federation {}, {} clients, listening on port {}",
                                 event.federation.value_or(""), event.clients, event.port.value_or(0));
  if (event.http_port) line += fmt::format(", page on port {}", *event.http_port);
  if (event.dropped_keys)
    line += fmt::format("\nignored keys of the recipe: {}", fmt::join(*event.dropped_keys, ", "));
  return line;
}

std::string line_of(const WaitingForClients& event) {
  return fmt::format("round {}: {} clients are here, waiting for {}", event.round, event.present,
                     event.needed);
}

std::string line_of(const ClientConnected& event) {
  return fmt::format("client {} '{}' from {}", event.client, event.name, event.peer);
}

std::string line_of(const ClientFault& event) {
  return fmt::format("{}: {} {}: {}", event.kind, event.name, event.peer, event.text);
}

std::string line_of(const ClientLost& event) {
  return fmt::format("round {}: no answer from client {}", event.round, event.client);
}

std::string line_of(const Warning& event) {
  return fmt::format("warning: {}", event.text);
}

std::string line_of(const RoundFinished& event) {
  const std::string accuracy =
      event.scores ? fmt::format(", accuracy {:.2f} %", 100 * event.scores->accuracy) : "";
  const std::string epsilon = event.epsilon ? fmt::format(", epsilon {:.3f}", *event.epsilon) : "";
  return fmt::format("round {}: {} updates, {}{}{}", event.round, event.uploads,
                     human_bytes(static_cast<double>(event.upload_bytes)), accuracy, epsilon);
}

std::string line_of(const RunFinished& event) {
  return fmt::format("finished, model sha256 {}", event.model_sha256);
}

std::string line_of(const auto& /*any other event*/) {
  return "";
}

void show(const Event& event) {
  const std::string line = std::visit([](const auto& kind) { return line_of(kind); }, event);
  if (!line.empty()) fmt::print(stderr, "{}\n", line);
}

void find_certificates(const std::string& folder, ServerTrust* trust) {
  if (folder.empty()) return;
  const std::filesystem::path path = folder;
  if (trust->certificate.empty()) trust->certificate = path / "server.pem";
  if (trust->key.empty()) trust->key = path / "server.key";
  if (trust->client_ca.empty()) trust->client_ca = path / "ca.pem";
  std::error_code code;
  if (!trust->revoked.empty()) return;
  trust->revoked = path / "revoked.pem";
  if (!std::filesystem::exists(trust->revoked, code)) {
    throw input_error("{}: found no such file, expected the revocation list that `bitfed certs init` makes",
                      trust->revoked.string());
  }
}

void serve(ServeArguments& arguments) {
  ServeOptions& options = arguments.options;
  find_certificates(arguments.certs, &options.trust);
  if (!options.trust.plaintext &&
      (options.trust.certificate.empty() || options.trust.key.empty() || options.trust.client_ca.empty())) {
    throw input_error(
        "serve: expected --certs DIR, or --tls-cert, --tls-key and --client-ca (bitfed certs makes them)");
  }
  Config recipe = Config::load(arguments.recipe);
  recipe.set_all(arguments.overrides);
  options.default_name = std::filesystem::path(arguments.recipe).stem().string();
  if (options.state.empty()) options.state = std::filesystem::path("runs") / options.default_name;
  options.version = BITFED_VERSION;
  options.stop = stop_on_signals();
  std::signal(SIGHUP, SIG_IGN);  // certificates and lists are read again without it
  options.page = live_page;
  RunSummary summary;
  try {
    summary = serve_federation(recipe, options, [&](const Event& event) {
      if (!arguments.quiet) show(event);
    });
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kStopped) throw;
    fmt::print(stderr, "stopped; nothing is lost: the same command goes on\n");
    return;
  }
  write_file_atomically(options.state / "report.html", report_page({read_run_with_model(options.state)}));
  if (arguments.json) {
    fmt::print("{}", read_text_file(options.state / "summary.json"));
  } else {
    fmt::print("{}: accuracy {:.2f} %, model {} (sha256 {}), report {}\n", summary.name,
               100 * summary.accuracy.value_or(0), (options.state / "model.safetensors").string(),
               summary.model_sha256, (options.state / "report.html").string());
  }
}

}  // namespace

void add_serve(Command& app) {
  auto arguments = std::make_shared<ServeArguments>();
  ServeOptions& options = arguments->options;
  Command* command = app.add_subcommand("serve", "Run a recipe's federation with clients over the network");
  command->add_option("RECIPE", arguments->recipe, "What to learn, a TOML file; see recipes/")->required();
  command->add_option("--set", arguments->overrides, "Override one value: --set rounds=20 (repeatable)")
      ->type_name("KEY=VALUE")
      ->one_at_a_time();
  command
      ->add_option("--state", options.state,
                   "The federation's folder (default: runs/NAME); one that exists is\n"
                   "continued")
      ->type_name("DIR");
  options.listen = "0.0.0.0:7443";
  command->add_option("--listen", options.listen, "Address and port; port 0 takes a free one")
      ->type_name("HOST:PORT")
      ->show_default();
  command
      ->add_option("--certs", arguments->certs,
                   "A folder of bitfed certs: server.pem, server.key, ca.pem,\nrevoked.pem")
      ->type_name("DIR");
  command->add_option("--tls-cert", options.trust.certificate, "The server's certificate")->type_name("FILE");
  command->add_option("--tls-key", options.trust.key, "Its key")->type_name("FILE");
  command
      ->add_option("--client-ca", options.trust.client_ca,
                   "The authority that signs the clients' certificates")
      ->type_name("FILE");
  command->add_option("--revoked", options.trust.revoked, "Revocation list; read again when it changes")
      ->type_name("FILE");
  command
      ->add_option("--allow", options.trust.allowed,
                   "Names of the clients that may take part, one a line; read\nagain when it changes")
      ->type_name("FILE");
  command
      ->add_option("--http", options.http,
                   "Where /metrics, /healthz and a live page are to be had; not encrypted, so best 127.0.0.1")
      ->type_name("ADDRESS:PORT");
  command->add_flag("--plaintext", options.trust.plaintext,
                    "No encryption and no authentication: for 127.0.0.1 alone");
  command->add_option("--data-dir", options.data_dir, "Where to look for data first")->type_name("DIR");
  command
      ->add_option("--threads", options.threads,
                   "For aggregation and evaluation (default: one per processor)")
      ->between(1, 4096);
  command
      ->add_option("--linger", options.linger_seconds, "Seconds to wait at the end for clients that are away")
      ->show_default()
      ->at_least(0);
  command
      ->add_option("--max-update,--most-update", options.max_update_bytes, "Bytes that one update may have")
      ->show_default();
  command->add_flag("--json", arguments->json, "Print the summary as one JSON document");
  command->add_flag("--quiet", arguments->quiet, "No messages");
  command->footer(
      "Writes what bitfed run writes, and federation.sqlite, in which every update lies before its client is "
      "told\n"
      "so. Killed at any moment and started again, it goes on where it was. With all clients present the "
      "model is\n"
      "that of bitfed run, byte for byte. When rounds begin and end: the recipe's [federation].");
  command->callback([arguments] { serve(*arguments); });
}

}  // namespace bitfed::cli
