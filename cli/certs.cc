#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "bitfed/base/byte_io.h"
#include "bitfed/rpc/security/certificates.h"
#include "bitfed/rpc/security/renewal.h"
#include "cli/commands.h"

namespace bitfed::cli {
namespace {

// The password of ca.key, from the environment rather than a flag that every process can read; empty: none.
std::string password() {
  const char* text = std::getenv("BITFED_CA_PASSWORD");
  return text == nullptr ? "" : text;
}

struct CertsArguments {
  std::string folder = "certs";
  std::string name = "bitfed-federation";
  std::vector<std::string> hosts;
  int days = 0;
};

void print(const Issued& issued) {
  fmt::print("{}\n{}\n", issued.certificate.string(), issued.key.string());
  fmt::print(stderr, "expires on {}\n", issued.ends);
}

Command* add_command(Command& certs, const std::shared_ptr<CertsArguments>& arguments, const char* name,
                     const char* description) {
  Command* command = certs.add_subcommand(name, description);
  command->add_option("--dir", arguments->folder, "The authority's folder")->type_name("DIR")->show_default();
  return command;
}

void add_days(Command* command, const std::shared_ptr<CertsArguments>& arguments, int days) {
  arguments->days = days;
  command->add_option("--days", arguments->days, "Days until it expires")->show_default()->between(1, 36500);
}

}  // namespace

void add_certs(Command& app) {
  Command* certs = app.add_subcommand("certs", "A private certificate authority for serve and join");

  auto init = std::make_shared<CertsArguments>();
  Command* command = add_command(*certs, init, "init", "Make the authority");
  command->add_option("--name", init->name, "Its name")->show_default();
  add_days(command, init, kAuthorityDays);
  command->callback([init] { print(make_authority(init->folder, init->name, init->days, password())); });

  auto server = std::make_shared<CertsArguments>();
  command =
      add_command(*certs, server, "server", "Make the server's certificate; a running server reloads it");
  command->add_option("HOST", server->hosts, "Host names and addresses that clients use")->required();
  add_days(command, server, kCertificateDays);
  command->callback(
      [server] { print(issue_server(server->folder, server->hosts, server->days, password())); });

  auto client = std::make_shared<CertsArguments>();
  command = add_command(*certs, client, "client", "Make a client's certificate");
  command->add_option("NAME", client->name, "The client's name: its identity in the federation")->required();
  add_days(command, client, kCertificateDays);
  command->callback(
      [client] { print(issue_client(client->folder, client->name, client->days, password())); });

  auto admin = std::make_shared<CertsArguments>();
  command =
      add_command(*certs, admin, "operator", "Make a certificate for bitfed admin from another machine");
  command->add_option("NAME", admin->name, "The operator's name, for the audit log")->required();
  add_days(command, admin, kCertificateDays);
  command->callback([admin] { print(issue_operator(admin->folder, admin->name, admin->days, password())); });

  auto revoke = std::make_shared<CertsArguments>();
  command = add_command(*certs, revoke, "revoke", "Lock a client out; a running server reloads the list");
  command->add_option("NAME", revoke->name, "The client's name")->required();
  command->callback([revoke] {
    const size_t count = revoke_client(revoke->folder, revoke->name, password());
    fmt::print("{} certificate{} of '{}' revoked\n", count, count == 1 ? "" : "s", revoke->name);
  });

  auto request = std::make_shared<CertsArguments>();
  command = certs->add_subcommand("request", "On a device: ask for a new certificate, with the one it has");
  command->add_option("--cert", request->name, "The device's certificate")->type_name("FILE")->required();
  command->add_option("--key", request->folder, "Its key; it stays where it is")
      ->type_name("FILE")
      ->required();
  command->callback([request] { fmt::print("{}", renewal_request(request->name, request->folder)); });

  auto renew = std::make_shared<CertsArguments>();
  command = add_command(*certs, renew, "renew", "Answer a device's request with a new certificate");
  command
      ->add_option("REQUEST", renew->name,
                   "What bitfed certs request printed; or a server's folder renewals/, whose requests\n"
                   "NAME.req are answered with NAME.pem")
      ->type_name("FILE-or-DIR")
      ->required();
  add_days(command, renew, kCertificateDays);
  command->callback([renew] {
    if (std::filesystem::is_directory(renew->name)) {
      const size_t count = renew_clients(renew->folder, renew->name, renew->days, password(),
                                         [](const auto& text) { fmt::print(stderr, "refused: {}\n", text); });
      fmt::print("{} renewed\n", count);
      return;
    }
    fmt::print("{}", renew_client(renew->folder, read_text_file(renew->name), renew->days, password()));
  });

  certs->footer(
      "Try:\n"
      "  bitfed certs init\n"
      "  bitfed certs server federation.example.org 192.0.2.7\n"
      "  bitfed certs client ward-3\n"
      "Give the server server.pem, server.key, ca.pem and revoked.pem; give ward-3 ca.pem, "
      "clients/ward-3.pem and\n"
      "clients/ward-3.key. ca.key stays where it is. Keys are ECDSA on P-256; only their owner can read "
      "them. With a password in BITFED_CA_PASSWORD, init encrypts ca.key, and the others need it.");
}

}  // namespace bitfed::cli
