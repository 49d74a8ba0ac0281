#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/base/byte_io.h"
#include "bitfed/federated/privacy/masked_sum.h"
#include "bitfed/model/state.h"

namespace bitfed {

// What one client sent back for a round.
struct ClientResult {
  uint32_t client = 0;
  Bytes upload;                     // encoded; empty where `state` or `added_up` stands for it
  uint64_t samples = 0;             // that it holds
  uint64_t trained_samples = 0;     // that it trained on, repetitions counted
  double train_seconds = 0;         // of CPU time; on a device that trains cohorts, its share of the time
  bool reused = false;              // taken from another run
  bool keeps_state = false;         // the client kept something that goes with this upload
  uint64_t upload_bytes = 0;        // of an upload that was added up
  bool added_up = false;            // elsewhere, see Transport::take_part
  std::optional<State> state = {};  // the upload of a client in this process, which nobody has encoded
  bool more_follow = false;         // at once: the server may accept this one together with the next
};

inline std::string upload_name(uint32_t round, uint32_t client) {
  return fmt::format("round {}: upload of client {}", round, client);
}

class ClientHalf;
class ClientStates;

// Clients that live in this process.
struct LocalClients {
  const ClientHalf& half;
  const ClientStates& states;  // what they keep
};

// How well the processes that train were used in a round.
struct TransportLoad {
  uint32_t workers = 0;
  double busy = 0;              // the part of the round's time that they trained for, from 0 to 1
  uint64_t received_bytes = 0;  // from them
};

// How broadcasts reach clients and uploads come back: within one process, or over a network.
class Transport {
 public:
  virtual ~Transport() = default;

  // The clients that are ready for a round, ascending, of those numbered below `clients`. May wait for
  // clients to connect; empty where the user stops.
  virtual std::vector<uint32_t> present(uint32_t /*round*/, uint32_t clients) {
    std::vector<uint32_t> all(clients);
    std::iota(all.begin(), all.end(), 0u);
    return all;
  }

  // Hands the broadcast to the clients and calls `receive` for each upload as it arrives, from any
  // thread but one at a time. Returns when every client has answered or was given up; a client that does not
  // answer is not an error. An exception from `receive` ends the round and is thrown again here.
  virtual void run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                         const std::function<void(ClientResult)>& receive) = 0;

  // Whether it can carry uploads that are masked, so that only their sum can be opened. Then begin_sum()
  // comes before a round's run_round(), with all its clients, and open_sum() after it, with those that
  // answered.
  virtual bool can_mask() const { return false; }
  virtual void begin_sum(uint32_t /*round*/, uint32_t /*attempt*/, const std::vector<uint32_t>& /*clients*/,
                         const std::string& /*broadcast_sha256*/) {}
  virtual Opening open_sum(uint32_t /*round*/, const std::vector<uint32_t>& /*answered*/,
                           const std::vector<ModularField>& /*fields*/) {
    return {};
  }

  // What the last round's uploads add up to that were not handed over one by one (their results have no
  // upload): for ServerHalf::accept_part. Empty: all were.
  virtual std::optional<State> take_part() { return std::nullopt; }

  // Where the clients live in this process, their own models can be evaluated. Empty: they are elsewhere.
  virtual std::optional<LocalClients> local_clients() const { return std::nullopt; }

  // Of the last round; empty where clients are not trained by other processes.
  virtual std::optional<TransportLoad> load() const { return std::nullopt; }

  // For transports that hold what the clients keep: takes it as of a finished round, makes what was taken
  // durable, and brings back what it was then. write_saved() may be called by another thread, while the next
  // round is run, but not while save() is. save() returns the rounds whose saves are needed, restore() is
  // given them again: an input_error where one of them is gone.
  virtual std::vector<uint32_t> save(uint32_t /*round*/) { return {}; }
  virtual void write_saved() {}
  virtual void restore(uint32_t /*round*/, const std::vector<uint32_t>& /*needed*/) {}
};

}  // namespace bitfed
