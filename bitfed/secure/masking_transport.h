#pragma once

#include <memory>

#include "bitfed/base/thread_pool.h"
#include "bitfed/federated/transport.h"

namespace bitfed {

// A transport whose clients' uploads are masked on their way from `clients`, with the whole protocol between
// simulated clients and a server in this process. Their secrets are drawn from the seed, so that an
// interrupted round goes on as it began: this shows what secure aggregation does and costs, and protects
// nobody.
std::unique_ptr<Transport> make_masking_transport(std::unique_ptr<Transport> clients, uint64_t seed,
                                                  size_t min_clients, ThreadPool& pool);

}  // namespace bitfed
