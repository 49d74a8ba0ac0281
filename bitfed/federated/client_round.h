#pragma once

#include <functional>

#include "bitfed/federated/method.h"
#include "bitfed/federated/transport.h"

namespace bitfed {

// One client's work in one round. Whoever carries the bytes calls this, so that none of it can depend on who
// does.
struct ClientWork {
  const ClientHalf& half;
  const Dataset& samples;
  uint64_t seed = 0;
  uint32_t round = 0;
  uint32_t client = 0;
  std::function<bool()> stop;
  std::function<void(double)> progress;
};

struct ClientOutcome {
  ClientResult result;
  Bytes kept;  // what the client keeps from now on instead of what it had; empty: as before
};

// `kept`: what the client kept when it last took part; empty: nothing.
ClientOutcome run_client(const ClientWork& work, const Bytes& broadcast, const Bytes& kept);

}  // namespace bitfed
