#pragma once

#include <memory>

#include "bitfed/base/thread_pool.h"
#include "bitfed/data/partition/partition.h"
#include "bitfed/federated/client_states.h"
#include "bitfed/federated/method.h"
#include "bitfed/federated/transport.h"
#include "bitfed/run/events.h"

namespace bitfed {

struct SimulationOptions {
  uint64_t seed = 0;
  double dropout = 0;  // probability that a chosen client does not answer
  std::function<bool()> stop;
};

// All clients in this process: each is one task on the pool, or, where the client half trains cohorts, a
// member of a group that is trained in one call. `states` holds what they keep; `events` receives their
// progress.
std::unique_ptr<Transport> make_in_process_transport(const SimulationOptions& options,
                                                     const ClientHalf& client, const Dataset& train,
                                                     const Partition& partition, ClientStates& states,
                                                     ThreadPool& pool, EventSink events);

}  // namespace bitfed
