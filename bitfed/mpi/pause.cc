#include "bitfed/mpi/pause.h"

#ifdef __linux__
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace bitfed {

#ifdef __linux__
namespace {

// The kernel's struct sched_attr in its first form; the headers of both C library and kernel cannot be
// included together everywhere.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;  // nanoseconds
  uint64_t deadline = 0;
  uint64_t period = 0;
};

constexpr uint64_t kTurn = 100'000;  // nanoseconds, the shortest

}  // namespace

void run_promptly() {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0 || attributes.policy != 0) return;
  attributes.size = sizeof attributes;
  attributes.runtime = kTurn;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}
#else
void run_promptly() {}
#endif

}  // namespace bitfed
