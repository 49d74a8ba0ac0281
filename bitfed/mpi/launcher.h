#pragma once

#include <string>

#include "bitfed/mpi/communicator.h"

namespace bitfed {

// The ranks that a launcher started this process with; null: it was started alone. Loads the module for MPI,
// bitfed-mpi.so, only in the first case, so that an ordinary run depends on nothing of it. A failure where
// the module is missing: every rank would run the whole experiment. The ranks part when the program exits:
// MPI_Finalize waits for the launcher, and a launcher that is about to kill may answer too late for an error
// that is printed afterwards.
Communicator* connect_ranks();

// "rank 0 on node7: " once this process is one of several ranks, else empty: for errors that reach no other
// rank.
std::string own_rank_prefix();

// The rank's number among those of its node, as launchers tell it; 0 where they do not.
unsigned local_rank();

// Names the program file, for comparing ranks: "0.1.0 (build 1a2b3c4d5e6f)".
std::string program_identity(const std::string& version);

std::string host_name();

}  // namespace bitfed
