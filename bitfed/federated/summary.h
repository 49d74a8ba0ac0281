#pragma once

#include <string>

#include "bitfed/federated/experiment.h"
#include "bitfed/federated/federation.h"

namespace bitfed {

// The model as it is written: its tensors, and texts about where it comes from.
State model_state(const Model& model, const Experiment& experiment);

// A finished run as one object, see docs/formats.md. Its wall_seconds are for the caller to fill in.
Event summarise(const Experiment& experiment, const Config& recipe, const ServerHalf& server,
                const Federation& federation, ThreadPool& pool, const std::string& version);

}  // namespace bitfed
