#pragma once

#include <functional>

namespace bitfed::cli {

// From now on the first Ctrl-C (or SIGTERM) asks for a stop at the end of a step, the second kills. Returns
// whether a stop was asked for.
std::function<bool()> stop_on_signals();

}  // namespace bitfed::cli
