#include <fmt/format.h>

#include <memory>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/pages/live_page.h"
#include "bitfed/report/pages/page.h"
#include "bitfed/run/run_folder.h"
#include "bitfed/rpc/server/served_federation.h"
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
void show(const Event& event) {
  const std::string kind = event["event"];
  const auto text = [&](const char* key) { return event[key].get<std::string>(); };
  const auto number = [&](const char* key) { return event[key].get<int64_t>(); };
  std::string line;
  if (kind == "run-started") {
    line = fmt::format("federation {}, {} clients, listening on port {}", text("federation"),
                       number("clients"), number("port"));
    if (event.contains("http_port")) line += fmt::format(", page on port {}", number("http_port"));
  } else if (kind == "waiting-for-clients") {
    line = fmt::format("round {}: {} clients are here, waiting for {}", number("round"), number("present"),
                       number("needed"));
  } else if (kind == "client-connected") {
    line = fmt::format("client {} '{}' from {}", number("client"), text("name"), text("peer"));
  } else if (kind == "client-fault") {
    line = fmt::format("{}: {} {}: {}", text("kind"), text("name"), text("peer"), text("text"));
  } else if (kind == "client-lost") {
    line = fmt::format("round {}: no answer from client {}", number("round"), number("client"));
  } else if (kind == "round-finished") {
    line = fmt::format("round {}: {} updates, {}", number("round"), number("uploads"),
                       human_bytes(event["upload_bytes"].get<double>()));
    if (event.contains("accuracy"))
      line += fmt::format(", accuracy {:.2f} %", 100 * event["accuracy"].get<double>());
  } else if (kind == "run-finished") {
    line = fmt::format("finished, model sha256 {}", text("model_sha256"));
  }
  if (!line.empty()) fmt::print(stderr, "{}\n", line);
}

void find_certificates(const std::string& folder, ServerTrust* trust) {
  if (folder.empty()) return;
  const std::filesystem::path path = folder;
  if (trust->certificate.empty()) trust->certificate = path / "server.pem";
  if (trust->key.empty()) trust->key = path / "server.key";
  if (trust->client_ca.empty()) trust->client_ca = path / "ca.pem";
  std::error_code code;
  if (trust->revoked.empty() && std::filesystem::exists(path / "revoked.pem", code))
    trust->revoked = path / "revoked.pem";
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
  options.page = live_page;
  Event summary;
  try {
    summary = serve_federation(recipe, options, [&](const Event& event) {
      if (!arguments.quiet) show(event);
    });
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kStopped) throw;
    throw Error(Error::Kind::kStopped, "stopped; nothing is lost: the same command goes on");
  }
  write_file_atomically(options.state / "report.html", report_page({read_run_with_model(options.state)}));
  if (arguments.json) {
    fmt::print("{}\n", summary.dump(1));
  } else {
    fmt::print("{}: accuracy {:.2f} %, model {} (sha256 {}), report {}\n", summary["name"].get<std::string>(),
               100 * summary["accuracy"].get<double>(), (options.state / "model.safetensors").string(),
               summary["model_sha256"].get<std::string>(), (options.state / "report.html").string());
  }
}

}  // namespace

void add_serve(CLI::App& app) {
  auto arguments = std::make_shared<ServeArguments>();
  ServeOptions& options = arguments->options;
  CLI::App* command = app.add_subcommand("serve", "Run a recipe's federation with clients over the network");
  command->add_option("RECIPE", arguments->recipe, "What to learn, a TOML file; see recipes/")->required();
  command->add_option("--set", arguments->overrides, "Override one value: --set rounds=20 (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--state", options.state,
                   "The federation's folder (default: runs/NAME); one that exists is\n"
                   "gone on with")
      ->type_name("DIR");
  command->add_option("--listen", options.listen, "Address and port; port 0 takes a free one")
      ->type_name("HOST:PORT")
      ->default_val("0.0.0.0:7443");
  command
      ->add_option("--certs", arguments->certs,
                   "A folder of bitfed certs: server.pem, server.key, ca.pem,\nrevoked.pem")
      ->type_name("DIR");
  command->add_option("--tls-cert", options.trust.certificate, "The server's certificate")->type_name("FILE");
  command->add_option("--tls-key", options.trust.key, "Its key")->type_name("FILE");
  command->add_option("--client-ca", options.trust.client_ca, "Who signs the clients' certificates")
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
                    "Neither encrypt nor check who it is: for 127.0.0.1 alone");
  command->add_option("--data-dir", options.data_dir, "Where to look for data first")->type_name("DIR");
  command
      ->add_option("--threads", options.threads,
                   "For aggregation and evaluation (default: one per processor)")
      ->check(CLI::Range(1u, 4096u));
  command
      ->add_option("--linger", options.linger_seconds, "Seconds to wait at the end for clients that are away")
      ->default_val(60)
      ->check(CLI::NonNegativeNumber);
  command->add_option("--most-update", options.most_update_bytes, "Bytes that one update may have")
      ->default_val(uint64_t{64} << 20);
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
