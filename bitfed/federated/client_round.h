#pragma once

#include <exception>
#include <functional>
#include <span>
#include <vector>

#include "bitfed/federated/method.h"
#include "bitfed/federated/transport.h"

namespace bitfed {

// The clients' work in one round. Every transport calls these functions, so a result cannot depend on the
// transport.

// What is the same for all clients of the round.
struct RoundWork {
  const ClientHalf& half;
  const State& broadcast;  // decoded: clients read the bytes of it, as they would over a network
  uint64_t seed = 0;
  uint32_t round = 0;
  std::function<bool()> stop;
  ThreadPool* pool = nullptr;  // threads for the uploads of a cohort; null: the caller's alone
};

struct ClientWork {
  uint32_t client = 0;
  const Dataset& samples;
  const Bytes& kept;  // what the client kept when it last took part; empty: nothing
  std::function<void(double)> progress;
};

struct ClientOutcome {
  ClientResult result;
  Bytes kept;                // what the client keeps from now on instead of what it had; empty: as before
  std::exception_ptr error;  // why there is no result; null: there is one
};

// One client, its upload encoded. Its error is thrown.
ClientOutcome run_client(const RoundWork& round, const ClientWork& client);

// Several clients in one step of the half, see ClientHalf::train_cohort. One outcome per client, in order,
// with its upload as a State; a client that fails does not affect the others.
std::vector<ClientOutcome> run_cohort(const RoundWork& round, std::span<const ClientWork> clients);

// Whether a simulated client drops out of the round, with this probability: a function of seed, round and
// client alone. Nobody drops out of the preparation, round 0.
bool drops_out(double dropout, uint64_t seed, uint32_t round, uint32_t client);

}  // namespace bitfed
