// Loaded before a program (LD_PRELOAD), kills it in place of its BITFED_DIE_AT_SYNC-th call to make bytes
// durable. What happens between two such calls cannot be told from the files afterwards, so these are all the
// moments there are.

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace {

void count() {
  static std::atomic<long> left = [] {
    const char* text = std::getenv("BITFED_DIE_AT_SYNC");
    return text != nullptr ? std::atol(text) : 0;
  }();
  if (left.fetch_sub(1) == 1) kill(getpid(), SIGKILL);
}

int call(const char* name, int handle) {
  count();
  return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, name))(handle);
}

}  // namespace

extern "C" int fsync(int handle) {
  return call("fsync", handle);
}
extern "C" int fdatasync(int handle) {
  return call("fdatasync", handle);
}
