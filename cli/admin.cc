#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "bitfed/base/error.h"
#include "bitfed/rpc/server/admin_socket.h"
#include "bitfed/rpc/server/audit_log.h"
#include "bitfed/rpc/server/remote_admin.h"
#include "cli/commands.h"

namespace bitfed::cli {
namespace {

struct AdminArguments {
  std::filesystem::path state;
  std::string server;
  std::string certs;
  std::string name;
  ClientTrust trust;
  std::string value;
  std::vector<std::string> settings;
};

void ask(const AdminArguments& arguments, const std::string& line) {
  if (arguments.state.empty() == arguments.server.empty())
    throw input_error("admin: expected either --state DIR or --server HOST:PORT");
  if (arguments.server.empty()) {
    fmt::print("{}", ask_admin(arguments.state / "admin.sock", line));
    return;
  }
  ClientTrust trust = arguments.trust;
  if (!arguments.certs.empty()) {
    const std::filesystem::path folder = arguments.certs;
    if (arguments.name.empty()) throw input_error("admin: --certs DIR: expected --id NAME, too");
    if (trust.ca.empty()) trust.ca = folder / "ca.pem";
    if (trust.certificate.empty()) trust.certificate = folder / "operators" / (arguments.name + ".pem");
    if (trust.key.empty()) trust.key = folder / "operators" / (arguments.name + ".key");
  }
  if (trust.ca.empty() || trust.certificate.empty() || trust.key.empty())
    throw input_error("admin: expected --ca, --cert and --key (bitfed certs operator makes them)");
  fmt::print("{}", ask_remote_admin(arguments.server, trust, line));
}

}  // namespace

void add_admin(Command& app) {
  Command* admin =
      app.add_subcommand("admin", "Operate a running server, from its own machine or from another");
  auto arguments = std::make_shared<AdminArguments>();
  admin->add_option("--state", arguments->state, "The federation's folder, as given to bitfed serve")
      ->type_name("DIR");
  admin->add_option("--server", arguments->server, "From another machine: where bitfed serve listens")
      ->type_name("HOST:PORT");
  admin
      ->add_option("--certs", arguments->certs,
                   "With --server: a folder of bitfed certs with ca.pem, operators/NAME.pem and .key")
      ->type_name("DIR");
  admin->add_option("--id", arguments->name, "The operator's name")->type_name("NAME");
  admin->add_option("--ca", arguments->trust.ca, "The authority that signed the server's certificate")
      ->type_name("FILE");
  admin->add_option("--cert", arguments->trust.certificate, "The operator's certificate")->type_name("FILE");
  admin->add_option("--key", arguments->trust.key, "Its key")->type_name("FILE");
  for (const auto& [name, description] :
       {std::pair("status", "What /status.json shows"), std::pair("pause", "Begin no round until resumed"),
        std::pair("resume", "Go on after pause"),
        std::pair("end", "End the server after the round under way")}) {
    admin->add_subcommand(name, description)->callback([arguments, line = std::string(name)] {
      ask(*arguments, line);
    });
  }
  Command* drop = admin->add_subcommand("drop", "Let the round go on without a client; it may come back");
  drop->add_option("NAME", arguments->value, "The client's name")->required();
  drop->callback([arguments] { ask(*arguments, "drop " + arguments->value); });

  Command* free = admin->add_subcommand("free", "Free a part, so that another name can take it");
  free->add_option("PART", arguments->value, "The part's number")->required();
  free->callback([arguments] { ask(*arguments, "free " + arguments->value); });

  Command* policy =
      admin->add_subcommand("policy", "Change when rounds begin and end; without settings, show it");
  policy->add_option("KEY=VALUE", arguments->settings,
                     "minimum_clients, quorum, deadline_seconds, min_answers; see docs/guide/operate.md");
  policy->callback(
      [arguments] { ask(*arguments, fmt::format("policy {}", fmt::join(arguments->settings, " "))); });

  Command* backup = admin->add_subcommand("backup", "Copy federation.sqlite while the server runs");
  backup->add_option("FILE", arguments->value, "A new file")->required();
  backup->callback(
      [arguments] { ask(*arguments, "backup " + std::filesystem::absolute(arguments->value).string()); });

  Command* audit =
      admin->add_subcommand("audit", "Check the chain of audit.jsonl; prints its length and digest");
  audit->callback([arguments] {
    if (arguments->state.empty()) throw input_error("admin audit: expected --state DIR: it reads the file");
    const AuditCheck found = check_audit_log(arguments->state / "audit.jsonl");
    fmt::print("{} lines, the last one's SHA-256 is {}\n", found.lines, found.last);
  });
}

}  // namespace bitfed::cli
