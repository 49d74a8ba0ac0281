#pragma once

#include <functional>
#include <nlohmann/json.hpp>

namespace bitfed {

// What happened, for whoever wants to know: the log, the progress bar, a report. An object whose "event"
// says which; docs/formats.md lists them. Sinks are called from one thread at a time.
using Event = nlohmann::ordered_json;
using EventSink = std::function<void(const Event&)>;

}  // namespace bitfed
