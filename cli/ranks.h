#pragma once

#include <string>

#include "bitfed/mpi/worker.h"

namespace bitfed::cli {

// Of a rank that trains so many clients at once; 0 threads: one. Rank 0 trains on processors alone: where
// devices are used, it trains nobody.
WorkerOptions worker_options(const std::string& device, unsigned threads, int rank);

}  // namespace bitfed::cli
