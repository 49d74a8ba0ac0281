#include "bitfed/mpi/rank_zero.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "bitfed/base/text_difference.h"
#include "bitfed/mpi/launcher.h"
#include "bitfed/mpi/pause.h"
#include "bitfed/mpi/rank_transport.h"
#include "bitfed/mpi/worker.h"

namespace bitfed {
namespace {

Communicator::Message wait_for_message(Communicator& ranks) {
  Pause pause;
  for (;;) {
    if (auto message = ranks.poll()) return *std::move(message);
    std::this_thread::sleep_for(pause.next());
  }
}

void add(const Confusion& part, Confusion* sum) {
  if (sum->empty()) {
    *sum = part;
    return;
  }
  if (part.size() != sum->size())
    throw input_error("a rank's message: found {} classes, expected {}", part.size(), sum->size());
  for (size_t row = 0; row < part.size(); ++row) {
    for (size_t column = 0; column < part.size(); ++column) (*sum)[row][column] += part[row][column];
  }
}

}  // namespace

RankZero::RankZero(Communicator& ranks, std::string program)
    : ranks_(ranks),
      program_(std::move(program)),
      hosts_(static_cast<size_t>(ranks.size()), host_name()),
      threads_(static_cast<size_t>(ranks.size())) {}

// What the others still send is received: they could not end otherwise.
RankZero::~RankZero() {
  for (int rank = 1; rank < ranks_.size(); ++rank) ranks_.send(rank, plain_message(MessageKind::kEnd));
  for (int left = workers(); left > 0;) {
    if (kind_of(wait_for_message(ranks_).bytes) == MessageKind::kBye) --left;
  }
}

void RankZero::check(int rank, const Ready& ready, const Experiment& experiment) const {
  const std::string name = rank_name(rank, ready.host);
  if (ready.program != program_)
    throw input_error("{}: found bitfed {}, expected that of rank 0, {}", name, ready.program, program_);
  if (ready.failure) throw Error(ready.failure->kind, fmt::format("{}: {}", name, ready.failure->text));
  const std::string own = experiment_text(experiment);
  if (ready.experiment != own)
    throw input_error("{}: read another recipe or other data than rank 0: {}", name,
                      first_difference(own, ready.experiment));
}

// Waits for all ranks, then reports the first of those that cannot take part.
void RankZero::open(uint32_t job, const Experiment& experiment) {
  for (int rank = 1; rank < ranks_.size(); ++rank) ranks_.send(rank, number_message(MessageKind::kJob, job));
  std::vector<Ready> ready(static_cast<size_t>(ranks_.size()));
  for (int left = workers(); left > 0;) {
    const Communicator::Message message = wait_for_message(ranks_);
    if (kind_of(message.bytes) != MessageKind::kReady) continue;  // of a job that was stopped
    ready[static_cast<size_t>(message.from)] = read_ready(message.bytes);
    --left;
  }
  for (size_t rank = 1; rank < ready.size(); ++rank) {
    check(static_cast<int>(rank), ready[rank], experiment);
    hosts_[rank] = ready[rank].host;
    threads_[rank] = std::max(1u, ready[rank].threads);
  }
}

// Every worker predicts a part of the samples by its threads. The counts do not depend on the parts.
Evaluation RankZero::evaluate(const Model& model, const EvaluationData& data) {
  const uint64_t all = std::accumulate(threads_.begin(), threads_.end(), uint64_t{0});
  Bytes bytes = encode(model.state());
  uint64_t before = 0;
  for (int rank = 1; rank < ranks_.size(); ++rank) {
    const uint64_t after = before + threads_[static_cast<size_t>(rank)];
    const uint64_t test = data.test.size();
    const uint64_t validation = data.validation.size();
    ranks_.send(rank, evaluate_message({{test * before / all, test * after / all, validation * before / all,
                                         validation * after / all},
                                        bytes.size()}));
    before = after;
  }
  ranks_.broadcast(bytes.size(), &bytes);
  Confusions sums;
  for (int left = workers(); left > 0;) {
    const Communicator::Message message = wait_for_message(ranks_);
    if (kind_of(message.bytes) == MessageKind::kFailed) throw_failure(message);
    if (kind_of(message.bytes) != MessageKind::kConfusion) continue;  // progress of the last client
    const Confusions part = read_confusion(message.bytes);
    add(part.test, &sums.test);
    add(part.validation, &sums.validation);
    --left;
  }
  return evaluation_of(std::move(sums.test), sums.validation);
}

void RankZero::throw_failure(const Communicator::Message& message) const {
  const Failure failure = read_failed(message.bytes);
  if (failure.kind == Error::Kind::kStopped) throw Error(failure.kind, failure.text);
  throw Error(failure.kind,
              fmt::format("{}: {}", rank_name(message.from, hosts_[static_cast<size_t>(message.from)]),
                          failure.text));
}

ExperimentResult RankZero::run(uint32_t job, const Experiment& experiment, ExperimentOptions options,
                               const EventSink& events) {
  run_promptly();
  open(job, experiment);
  options.rank_hosts = hosts_;
  options.transport = [&](const Experiment& read, ClientStates& states, const EventSink& sink) {
    return make_rank_transport(ranks_, {options.stop, hosts_, threads_}, read, states, sink);
  };
  options.evaluate_elsewhere = [&](const Model& model) { return evaluate(model, experiment.evaluation); };
  return run_experiment(experiment, options, events);
}

void RankZero::run_alone(const std::vector<uint32_t>& jobs, const std::function<bool()>& stop,
                         const std::function<void(uint32_t job, int rank)>& begun,
                         const std::function<void(uint32_t job)>& done) {
  size_t next = 0;
  const auto give = [&](int rank) {
    if (next == jobs.size()) return false;
    begun(jobs[next], rank);
    ranks_.send(rank, number_message(MessageKind::kAlone, jobs[next++]));
    return true;
  };
  size_t running = 0;
  for (int rank = 1; rank < ranks_.size(); ++rank) running += give(rank) ? 1 : 0;
  Pause pause;
  while (running > 0) {
    if (stop && stop()) throw Error(Error::Kind::kStopped, "stopped");
    const auto message = ranks_.poll();
    if (!message) {
      std::this_thread::sleep_for(pause.next());
      continue;
    }
    pause.reset();
    if (kind_of(message->bytes) == MessageKind::kFailed) throw_failure(*message);
    if (kind_of(message->bytes) != MessageKind::kDone) continue;
    --running;
    running += give(message->from) ? 1 : 0;
    done(read_number(message->bytes));
  }
}

}  // namespace bitfed
