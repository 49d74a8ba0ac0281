#pragma once

#include <functional>
#include <string>

#include "bitfed/rpc/device/own_samples.h"
#include "bitfed/rpc/security/trust.h"
#include "bitfed/run/events.h"

namespace bitfed {

struct ClientOptions {
  std::string server;  // HOST:PORT
  ClientTrust trust;
  std::string name;  // without TLS; with it the certificate's counts
  OwnData own;
  std::filesystem::path state;  // the folder for what must not be forgotten, and for the result
  bool masked = false;          // takes part only where updates are masked
  bool accept_privacy = false;  // another [privacy] than it has joined with
  double give_up_seconds = 0;   // after so long without a server; 0: never
  uint64_t max_broadcast_bytes = uint64_t{1} << 30;
  std::string version;
  std::function<bool()> stop;
};

// A device's life in a federation: joins, works whenever the server asks, comes back after whatever happens
// to the connection, the server or itself, and ends with the federation's model in `state`/model.safetensors.
// Returns that file's path. Error::Kind::kStopped if the user stopped it.
std::filesystem::path run_federation_client(const ClientOptions& options, const EventSink& events);

}  // namespace bitfed
