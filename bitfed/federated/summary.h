#pragma once

#include "bitfed/federated/experiment.h"
#include "bitfed/federated/federation.h"
#include "bitfed/run/summary.h"

namespace bitfed {

// A finished run. The caller fills in version, wall_seconds and client_results.
RunSummary summarise(const Experiment& experiment, const ServerHalf& server, const Federation& federation,
                     ThreadPool& pool);

}  // namespace bitfed
