#pragma once

#include "bitfed/federated/experiment.h"
#include "bitfed/federated/federation.h"
#include "bitfed/run/summary.h"

namespace bitfed {

// The model as it is written: its tensors, and metadata about where it comes from.
State model_state(const Model& model, const Experiment& experiment);

// A finished run. The caller fills in version, wall_seconds and client_results.
RunSummary summarise(const Experiment& experiment, const ServerHalf& server, const Federation& federation,
                     ThreadPool& pool);

}  // namespace bitfed
