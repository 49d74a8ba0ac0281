#include "bitfed/federated/client_round.h"

#include <ctime>

namespace bitfed {
namespace {

// CPU time of the calling thread: a client's cost does not depend on how many run beside it.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

ClientOutcome run_client(const ClientWork& work, const Bytes& broadcast, const Bytes& kept) {
  const double start = thread_seconds();
  ClientOutcome outcome;
  ClientResult& result = outcome.result;
  const ClientContext context{RandomStream({work.seed, "client", work.round, work.client}),
                              work.stop,
                              work.progress,
                              [&result](uint64_t more) { result.trained_samples += more; },
                              kept.empty() ? State() : decode(kept, "the client's own state"),
                              [&](const State& state) {
                                outcome.kept = encode(state);
                                result.keeps_state = true;
                              }};
  result.client = work.client;
  result.samples = work.samples.size();
  // Every client reads the bytes of the broadcast, as it would over a network.
  result.upload = encode(work.half.train(decode(broadcast, "broadcast"), work.samples, context));
  result.train_seconds = thread_seconds() - start;
  return outcome;
}

}  // namespace bitfed
