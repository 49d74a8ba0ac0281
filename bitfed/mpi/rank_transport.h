#pragma once

#include <memory>

#include "bitfed/federated/client_states.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/federated/transport.h"
#include "bitfed/mpi/client_threads.h"
#include "bitfed/mpi/communicator.h"
#include "bitfed/run/events.h"

namespace bitfed {

struct RankTransportOptions {
  std::function<bool()> stop;
  std::vector<std::string> hosts;  // by rank
  std::vector<uint32_t> threads;   // that train clients, by rank
  ClientThreads* own = nullptr;    // of this rank; null: it trains nobody
  // What clients keep is handed out in messages of about so many bytes. MPI's can have 1 GiB.
  size_t work_bytes = size_t{64} << 20;
};

// Clients that this rank and the others train, see worker.h. What clients keep is held here, in `states`, and
// travels with the client's work: any number of ranks can go on with it.
std::unique_ptr<Transport> make_rank_transport(Communicator& ranks, const RankTransportOptions& options,
                                               const Experiment& experiment, ClientStates& states,
                                               EventSink events);

// "rank 3 on node7", for errors.
std::string rank_name(int rank, const std::string& host);

}  // namespace bitfed
