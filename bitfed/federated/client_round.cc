#include "bitfed/federated/client_round.h"

#include <cassert>
#include <ctime>

#include "bitfed/base/stopwatch.h"

namespace bitfed {
namespace {

// CPU time of the calling thread: a client's cost does not depend on what runs at the same time.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

ClientContext context_of(const RoundWork& round, const ClientWork& client, ClientOutcome* outcome) {
  return {RandomStream({round.seed, "client", round.round, client.client}),
          round.stop,
          client.progress,
          [outcome](uint64_t more) { outcome->result.trained_samples += more; },
          client.kept.empty() ? State() : decode(client.kept, "the client's own state"),
          [outcome](const State& state) {
            outcome->kept = encode(state);
            outcome->result.keeps_state = true;
          }};
}

// The time of the whole cohort, shared out by the samples that its clients trained on.
void share_seconds(double seconds, std::span<ClientOutcome> outcomes) {
  uint64_t all = 0;
  for (const ClientOutcome& outcome : outcomes) all += outcome.result.trained_samples;
  for (ClientOutcome& outcome : outcomes) {
    const double share = all == 0
                             ? 1 / static_cast<double>(outcomes.size())
                             : static_cast<double>(outcome.result.trained_samples) / static_cast<double>(all);
    outcome.result.train_seconds = share * seconds;
  }
}

}  // namespace

bool drops_out(double dropout, uint64_t seed, uint32_t round, uint32_t client) {
  return dropout > 0 && round > 0 && RandomStream({seed, "dropout", round, client}).uniform() < dropout;
}

ClientOutcome run_client(const RoundWork& round, const ClientWork& client) {
  ClientOutcome outcome = std::move(run_cohort(round, {&client, 1}).front());
  if (outcome.error) std::rethrow_exception(outcome.error);
  outcome.result.upload = encode(*outcome.result.state);
  outcome.result.state.reset();
  return outcome;
}

std::vector<ClientOutcome> run_cohort(const RoundWork& round, std::span<const ClientWork> clients) {
  const double start = thread_seconds();
  const Stopwatch clock;
  std::vector<ClientOutcome> outcomes(clients.size());
  std::vector<ClientContext> contexts;
  std::vector<CohortClient> cohort;
  std::vector<ClientOutcome*> outcome_of;  // of a member of the cohort
  contexts.reserve(clients.size());
  for (size_t i = 0; i < clients.size(); ++i) {
    outcomes[i].result.client = clients[i].client;
    outcomes[i].result.samples = clients[i].samples.size();
    try {
      contexts.push_back(context_of(round, clients[i], &outcomes[i]));
      cohort.push_back({clients[i].samples, contexts.back()});
      outcome_of.push_back(&outcomes[i]);
    } catch (...) {
      outcomes[i].error = std::current_exception();
    }
  }
  std::vector<CohortUpload> uploads = round.half.train_cohort(round.broadcast, cohort, round.pool);
  assert(uploads.size() == cohort.size());
  for (size_t i = 0; i < uploads.size(); ++i) {
    ClientResult& result = outcome_of[i]->result;
    outcome_of[i]->error = uploads[i].error;
    if (uploads[i].error) continue;
    uploads[i].upload.set_source(upload_name(round.round, result.client));
    result.state = std::move(uploads[i].upload);
  }
  // While a device trains, this thread waits.
  share_seconds(round.half.cohort() > 1 ? clock.seconds() : thread_seconds() - start, outcomes);
  return outcomes;
}

}  // namespace bitfed
