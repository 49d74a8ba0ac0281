#pragma once

#include <functional>

namespace bitfed::python {

using Stop = std::function<bool()>;

// Calls work(stop) on a thread of its own, without the GIL. Meanwhile the calling thread handles signals and,
// with the GIL, calls `poll` a few times per second and once at the end. An exception of a signal handler
// (Ctrl-C) or of `poll` makes stop() true and is thrown when the work has ended.
void run_interruptibly(const std::function<void(const Stop& stop)>& work,
                       const std::function<void()>& poll = {});

}  // namespace bitfed::python
