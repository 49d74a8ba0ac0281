// Loaded before a program (LD_PRELOAD), kills it at its BITFED_DIE_AT_SYNC-th moment. Moments are calls to
// make bytes durable, and the commits of SQLite's log: in place of writing a commit's last frame, and after
// it. What happens between two of these cannot be told from the files afterwards.

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <utility>

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

// The header of a frame of the log: 24 bytes, of which the second four are 0 unless it is a commit's last.
bool is_commit(const void* bytes, size_t size) {
  const auto* header = static_cast<const uint8_t*>(bytes);
  return size == 24 && (header[4] | header[5] | header[6] | header[7]) != 0;
}

}  // namespace

extern "C" int fsync(int handle) {
  return call("fsync", handle);
}
extern "C" int fdatasync(int handle) {
  return call("fdatasync", handle);
}
extern "C" ssize_t pwrite64(int handle, const void* bytes, size_t size, off64_t offset) {
  static thread_local bool in_commit = false;  // the next bytes are the frame's page
  const bool ends_commit = std::exchange(in_commit, is_commit(bytes, size));
  if (in_commit) count();
  const auto real =
      reinterpret_cast<ssize_t (*)(int, const void*, size_t, off64_t)>(dlsym(RTLD_NEXT, "pwrite64"));
  const ssize_t written = real(handle, bytes, size, offset);
  if (ends_commit) count();
  return written;
}
