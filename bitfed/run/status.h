#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/run/events.h"

namespace bitfed {

// Where a served federation stands: /status.json, the live page and /metrics are made from it. Fields carry
// the names that they have in /status.json, see docs/reference/run-folder.md.
struct FederationStatus {
  struct About {
    std::string name, method, dataset, federation;
    uint32_t rounds = 0;
    uint32_t clients = 0;
    uint32_t clients_per_round = 0;

    static void fields(auto& self, auto& field);
  };
  struct Client {
    uint32_t client = 0;
    std::string name = {};
    std::string state = {};  // "ready", "preparing" or "away"
    std::optional<uint64_t> samples = {};
    std::optional<uint64_t> last_round = {};  // in which an update of it was accepted
    std::string peer = {};
    std::optional<int64_t> certificate_seconds = {};  // until its certificate expires; connected clients only

    static void fields(auto& self, auto& field);
  };
  struct Round {
    uint32_t round = 0;
    double seconds = 0;
    uint64_t uploads = 0;
    uint64_t upload_bytes = 0;
    std::optional<double> accuracy = {};
    std::optional<double> epsilon = {};  // spent so far; empty: no differential privacy

    static void fields(auto& self, auto& field);
  };

  std::optional<About> about = {};  // empty: the run has not started yet
  std::string phase = "loading";
  uint64_t round = 0;
  uint64_t waiting_for = 0;  // clients
  uint64_t connections = 0;
  uint64_t upload_bytes = 0;  // since this process began, as is what follows
  uint64_t download_bytes = 0;
  uint64_t answers_missed = 0;
  double waiting_seconds = 0;   // since anything went on: a round, an update, a client that came
  uint64_t waiting_bytes = 0;   // of updates on their way in
  uint64_t waiting_offers = 0;  // updates that wait for their round or for room
  uint64_t dropped = 0;         // clients that rounds do not wait for
  bool paused = false;
  uint64_t connections_evicted = 0;      // that had not authenticated, for newer ones
  uint64_t connections_turned_away = 0;  // for lack of file descriptors
  std::optional<uint64_t> disk_free_bytes = {};
  std::optional<int64_t> server_certificate_seconds = {};        // until it expires
  std::optional<int64_t> first_client_certificate_seconds = {};  // the first to expire of connected clients
  std::map<std::string, uint64_t> counts = {};
  uint64_t resident_bytes = 0;
  std::vector<Client> clients_known = {};
  std::vector<Round> curve = {};
  std::vector<ClientFault> faults = {};  // the last ones

  static void fields(auto& self, auto& field);
};

// The text of /status.json.
std::string status_text(const FederationStatus& status);

}  // namespace bitfed
