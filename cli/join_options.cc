#include <fmt/format.h>

#include <memory>

#include "bitfed/base/error.h"
#include "bitfed/rpc/device/client.h"
#include "bitfed/rpc/device/service_manager.h"
#include "cli/commands.h"
#include "cli/stop.h"

namespace bitfed::cli {
namespace {

struct JoinArguments {
  ClientOptions options;
  std::string certs;
  int64_t part = -1;
  bool quiet = false;
};

std::string line_of(const DeviceConnecting& event) {
  return fmt::format("connecting to {}", event.server);
}

std::string line_of(const DeviceDisconnected& event) {
  return fmt::format("no connection: {}; trying again", event.text);
}

std::string line_of(const CertificateExpires& event) {
  return fmt::format("{}: expires in {} days; renew it", event.file, event.days);
}

std::string line_of(const Warning& event) {
  return fmt::format("warning: {}", event.text);
}

std::string line_of(const DeviceJoined& event) {
  return fmt::format("client {} of federation {}, {} samples", event.client, event.federation, event.samples);
}

std::string line_of(const TrainingFailed& event) {
  return fmt::format("round {}: {}", event.round, event.text);
}

std::string line_of(const UpdateSettled& event) {
  return fmt::format("round {}: {} bytes, {}{}{}", event.round, event.upload_bytes, event.verdict,
                     event.text.empty() ? "" : ": ", event.text);
}

std::string line_of(const ResultReceived& event) {
  return fmt::format("finished after {} rounds", event.rounds);
}

std::string line_of(const auto& /*any other event*/) {
  return "";
}

void show(const Event& event) {
  const std::string line = std::visit([](const auto& kind) { return line_of(kind); }, event);
  if (!line.empty()) fmt::print(stderr, "{}\n", line);
}

void join(JoinArguments& arguments) {
  ClientOptions& options = arguments.options;
  if (arguments.part >= 0) options.own.part = static_cast<uint32_t>(arguments.part);
  if (options.own.part.has_value() == !options.own.data.empty())
    throw input_error("join: expected either --data FILE-or-DIR or --part N");
  ClientTrust& trust = options.trust;
  if (!arguments.certs.empty()) {
    const std::filesystem::path folder = arguments.certs;
    if (options.name.empty()) throw input_error("join: --certs DIR: expected --id NAME, too");
    if (trust.ca.empty()) trust.ca = folder / "ca.pem";
    if (trust.certificate.empty()) trust.certificate = folder / "clients" / (options.name + ".pem");
    if (trust.key.empty()) trust.key = folder / "clients" / (options.name + ".key");
  }
  if (!trust.plaintext && (trust.ca.empty() || trust.certificate.empty() || trust.key.empty()))
    throw input_error("join: expected --ca, --cert and --key (bitfed certs makes them)");
  if (trust.plaintext && options.name.empty())
    throw input_error("join: --plaintext: expected --id NAME, too");
  if (options.state.empty()) options.state = "client-state";
  options.version = BITFED_VERSION;
  // The client asks whether to stop wherever it goes on: waiting, pausing, training.
  ServiceManager manager;
  options.stop = [&manager, stop = stop_on_signals()] {
    manager.alive();
    return stop();
  };
  try {
    const std::filesystem::path model = run_federation_client(options, [&](const Event& event) {
      if (!arguments.quiet) show(event);
    });
    fmt::print("{}\n", model.string());
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kStopped) throw;
    throw Error(Error::Kind::kStopped, "stopped; a finished update is kept: the same command goes on");
  }
}

}  // namespace

void add_join_options(Command& app, const ImageReaders& readers) {
  auto arguments = std::make_shared<JoinArguments>();
  ClientOptions& options = arguments->options;
  options.own.readers = readers;
  Command* command = &app;
  command->add_option("--server", options.server, "Where bitfed serve listens")
      ->type_name("HOST:PORT")
      ->required();
  command
      ->add_option(
          "--data", options.own.data,
          readers.own
              ? "This device's own samples: a CSV file with the recipe's columns; a folder of images,\n"
                "one folder per class; .npz, .npy or IDX; or a folder in the layout of the recipe's\n"
                "data set"
              : "This device's own samples: a CSV file with the recipe's columns, or a folder with\n"
                "images in the layout of the recipe's data set")
      ->type_name("FILE-or-DIR");
  if (readers.own) {
    command->add_option("--labels", options.own.labels, "Of an IDX or .npy file: the file with its labels")
        ->type_name("FILE");
  }
  command
      ->add_option("--part", arguments->part,
                   "Instead: part N of the recipe's own data, in the partition of bitfed run (for trials)")
      ->type_name("N")
      ->at_least(0);
  command->add_option("--data-dir", options.own.data_dir, "With --part: where to look for data first")
      ->type_name("DIR");
  command
      ->add_option("--state", options.state,
                   "The device's folder: what it keeps, and the result (default: client-state)")
      ->type_name("DIR");
  command->add_option("--id", options.name, "The client's name; with certificates, their common name")
      ->type_name("NAME");
  command
      ->add_option("--certs", arguments->certs, "A folder of bitfed certs: ca.pem, clients/NAME.pem and .key")
      ->type_name("DIR");
  command->add_option("--ca", options.trust.ca, "The authority that signed the server's certificate")
      ->type_name("FILE");
  command->add_option("--cert", options.trust.certificate, "This client's certificate")->type_name("FILE");
  command->add_option("--key", options.trust.key, "Its key")->type_name("FILE");
  command->add_flag("--plaintext", options.trust.plaintext,
                    "No encryption and no authentication: for 127.0.0.1 alone");
  command
      ->add_option("--give-up", options.give_up_seconds,
                   "Seconds without a server after which to give up (default: never)")
      ->at_least(0);
  command->add_flag("--masked", options.masked,
                    "Take part only where the server sees no update by itself (secure aggregation)");
  command->add_flag("--accept-privacy", options.accept_privacy,
                    "Take part although the recipe's [privacy] is another than when this device joined");
  command->add_flag("--quiet", arguments->quiet, "No messages");
  command->footer(
      "The recipe comes from the server. Samples, and what the method keeps for this client, never leave "
      "the\n"
      "device. Reconnects after any failure of the server, the network or itself; a finished update is not\n"
      "trained again. Ends with the federation's model in the state folder and prints its path.");
  command->callback([arguments] { join(*arguments); });
}

}  // namespace bitfed::cli
