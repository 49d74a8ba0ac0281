#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "bitfed/base/config.h"
#include "bitfed/rpc/security/trust.h"
#include "bitfed/run/events.h"
#include "bitfed/run/status.h"
#include "bitfed/run/summary.h"

namespace bitfed {

struct ServeOptions {
  std::filesystem::path state;  // the folder of the federation; an existing one is gone on with
  std::string default_name = "run";
  std::string data_dir;
  std::string listen;
  ServerTrust trust;
  unsigned threads = 0;
  double linger_seconds = 60;  // for clients that are away when the federation ends
  uint64_t max_update_bytes = uint64_t{64} << 20;
  std::string http;  // ADDRESS:PORT for /metrics, /healthz, /status.json and the page; empty: none
  std::function<std::string(const FederationStatus& status)> page;
  std::function<bool()> stop;
  std::string version;
};

// Runs the federation of a recipe with clients that come over the network, and writes the folder that a
// simulation would (recipe, events, model, summary) with federation.sqlite in the place of checkpoints.
// Killed at any moment and started again, it continues where it was.
RunSummary serve_federation(const Config& recipe, const ServeOptions& options, const EventSink& events);

}  // namespace bitfed
