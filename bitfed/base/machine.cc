#include "bitfed/base/machine.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>
#include <thread>

namespace bitfed {
namespace {

// Not every architecture's kernel names the processor; all name the architecture.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname names{};
  return uname(&names) == 0 ? names.machine : "unknown processor";
}

}  // namespace

std::string describe_machine() {
  const unsigned count = std::thread::hardware_concurrency();
  return fmt::format("{}, {} processor{}", processor_name(), count, count == 1 ? "" : "s");
}

}  // namespace bitfed
