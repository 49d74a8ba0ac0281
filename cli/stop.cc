#include "cli/stop.h"

#include <atomic>
#include <csignal>

namespace bitfed::cli {
namespace {

std::atomic<bool> stop_asked = false;

void ask_to_stop(int signal) {
  stop_asked = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

std::function<bool()> stop_on_signals() {
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  return [] { return stop_asked.load(); };
}

}  // namespace bitfed::cli
