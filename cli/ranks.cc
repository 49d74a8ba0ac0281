#include "cli/ranks.h"

#include <algorithm>

#include "cli/stop.h"

namespace bitfed::cli {

WorkerOptions worker_options(const std::string& device, unsigned threads, int rank) {
  return {.program = program_identity(BITFED_VERSION),
          .threads = rank == 0 && device != "cpu" ? 0 : std::max(1u, threads),
          .stop = stop_on_signals(),
          .load = {},
          .run_alone = {}};
}

}  // namespace bitfed::cli
