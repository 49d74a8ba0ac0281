#pragma once

#include <functional>

namespace bitfed::cli {

// From now on the first Ctrl-C (or SIGTERM) requests a stop at the end of a step, the second kills. The
// returned function tells whether a stop was requested.
std::function<bool()> stop_on_signals();

}  // namespace bitfed::cli
