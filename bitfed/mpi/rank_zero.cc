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

RankZero::RankZero(Communicator& ranks, const WorkerOptions& own,
                   std::function<void(const std::string&)> warn)
    : ranks_(ranks),
      options_(own),
      warn_(std::move(warn)),
      hosts_(static_cast<size_t>(ranks.size()), own.host),
      threads_(static_cast<size_t>(ranks.size())) {
  if (own.threads == 0) return;
  threads_[0] = own.threads;
  own_.emplace(own.threads, own.stop, ClientThreads::Uploads::kAsTheyAre);
}

// What the others still send is received: they could not end otherwise.
RankZero::~RankZero() {
  for (int rank = 1; rank < ranks_.size(); ++rank) ranks_.send(rank, plain_message(MessageKind::kEnd));
  if (own_) own_->abandon();
  for (int left = others(); left > 0;) {
    if (kind_of(wait_for_message(ranks_).bytes) == MessageKind::kBye) --left;
  }
}

std::string RankZero::name(int rank) const {
  return rank_name(rank, hosts_[static_cast<size_t>(rank)]);
}

// Before the first job. Every rank says hello before it says anything else.
void RankZero::greet() {
  if (has_greeted_) return;
  has_greeted_ = true;
  std::vector<Hello> hellos(static_cast<size_t>(ranks_.size()));
  hellos[0] = {options_.program, options_.host, options_.threads, options_.processors};
  for (int left = others(); left > 0; --left) {
    const Communicator::Message message = wait_for_message(ranks_);
    if (kind_of(message.bytes) != MessageKind::kHello)
      throw failure("rank {}: found another message, expected that it says which program it runs",
                    message.from);
    hellos[static_cast<size_t>(message.from)] = read_hello(message.bytes);
  }
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const Hello& hello = hellos[static_cast<size_t>(rank)];
    hosts_[static_cast<size_t>(rank)] = hello.host;
    if (rank > 0) threads_[static_cast<size_t>(rank)] = std::max(1u, hello.threads);
    if (hello.program != options_.program)
      throw input_error("{}: found bitfed {}, expected that of rank 0, {}", name(rank), hello.program,
                        options_.program);
    if (warn_ && hello.processors < hello.threads)
      warn_(fmt::format("{}: {} threads, {} processor{}; see --bind-to and --cpus-per-task", name(rank),
                        hello.threads, hello.processors, hello.processors == 1 ? "" : "s"));
  }
}

// Waits for all ranks, then reports the first of those that cannot take part. Returns the device that they
// train on; empty: the CPU.
std::string RankZero::open(uint32_t job, const Experiment& experiment) {
  for (int rank = 1; rank < ranks_.size(); ++rank) ranks_.send(rank, number_message(MessageKind::kJob, job));
  const std::string own = experiment_text(experiment);
  std::vector<Ready> ready(static_cast<size_t>(ranks_.size()));
  for (int left = others(); left > 0;) {
    const Communicator::Message message = wait_for_message(ranks_);
    if (kind_of(message.bytes) != MessageKind::kReady) continue;  // of a job that was stopped
    ready[static_cast<size_t>(message.from)] = read_ready(message.bytes);
    --left;
  }
  for (int rank = 1; rank < ranks_.size(); ++rank) {
    const auto& [text, device, failure] = ready[static_cast<size_t>(rank)];
    if (failure) throw Error(failure->kind, fmt::format("{}: {}", name(rank), failure->text));
    if (text != own)
      throw input_error("{}: read another recipe or other data than rank 0: {}", name(rank),
                        first_difference(own, text));
  }
  return ready.back().device;
}

// Every rank that trains predicts a part of the samples by its threads. The counts do not depend on the
// parts.
Evaluation RankZero::evaluate(const Model& model, const EvaluationData& data) {
  const uint64_t all = std::accumulate(threads_.begin(), threads_.end(), uint64_t{0});
  const Bytes bytes = encode(model.state());
  const Shared sent = shared(bytes, static_cast<size_t>(others()));
  const auto part_after = [&](uint64_t before, int rank) {
    const uint64_t after = before + threads_[static_cast<size_t>(rank)];
    const uint64_t test = data.test.size();
    const uint64_t validation = data.validation.size();
    return EvaluationPart{test * before / all, test * after / all, validation * before / all,
                          validation * after / all};
  };
  uint64_t before = threads_[0];
  for (int rank = 1; rank < ranks_.size(); ++rank) {
    ranks_.send(rank, evaluate_message({part_after(before, rank), sent}));
    before += threads_[static_cast<size_t>(rank)];
  }
  if (sent.follows > 0) ranks_.broadcast(bytes);
  Confusions sums;
  if (own_) sums = own_->evaluate(model, part_after(0, 0));
  for (int left = others(); left > 0;) {
    const Communicator::Message message = wait_for_message(ranks_);
    if (kind_of(message.bytes) == MessageKind::kFailed)
      throw_failure(message.from, read_failed(message.bytes));
    if (kind_of(message.bytes) != MessageKind::kConfusion) continue;  // progress of the last client
    const Confusions part = read_confusion(message.bytes);
    add(part.test, &sums.test);
    add(part.validation, &sums.validation);
    --left;
  }
  return evaluation_of(std::move(sums.test), sums.validation);
}

void RankZero::throw_failure(int rank, const Failure& failure) const {
  if (failure.kind == Error::Kind::kStopped) throw Error(failure.kind, failure.text);
  throw Error(failure.kind, fmt::format("{}: {}", name(rank), failure.text));
}

ExperimentResult RankZero::run(uint32_t job, const Experiment& experiment, ExperimentOptions options,
                               const EventSink& events) {
  run_promptly();
  greet();
  options.rank_device = open(job, experiment);
  options.rank_hosts = hosts_;
  options.transport = [&](const Experiment& read, ClientStates& states, const EventSink& sink) {
    return make_rank_transport(ranks_, {options.stop, hosts_, threads_, own_ ? &*own_ : nullptr}, read,
                               states, sink);
  };
  options.evaluate_elsewhere = [&](const Model& model) { return evaluate(model, experiment.evaluation); };
  return run_experiment(experiment, options, events);
}

bool RankZero::is_faster_alone(size_t jobs, uint32_t clients) {
  greet();
  const uint64_t all = std::accumulate(threads_.begin(), threads_.end(), uint64_t{0});
  const uint64_t of_worker = all / static_cast<uint64_t>(workers());
  // In times of a client.
  const uint64_t alone = (clients + of_worker - 1) / of_worker;
  const uint64_t together = jobs * ((clients + all - 1) / all);
  return alone < together;
}

void RankZero::run_alone(const std::vector<uint32_t>& jobs, const std::function<bool()>& stop,
                         const std::function<void(uint32_t job, int rank)>& begun,
                         const std::function<void(uint32_t job)>& done) {
  greet();
  size_t next = 0;
  size_t running = 0;
  const auto give = [&](int rank) {
    if (next == jobs.size()) return;
    const uint32_t job = jobs[next++];
    begun(job, rank);
    ++running;
    if (rank > 0) {
      ranks_.send(rank, number_message(MessageKind::kAlone, job));
    } else {
      own_->run_alone(job, [this, job](const auto& is_stopped) { options_.run_alone(job, is_stopped); });
    }
  };
  const auto take = [&](uint32_t job, int rank) {
    --running;
    give(rank);
    done(job);
  };
  for (int rank = 1; rank < ranks_.size(); ++rank) give(rank);
  if (own_) give(0);
  Pause pause;
  while (running > 0) {
    if (stop && stop()) throw Error(Error::Kind::kStopped, "stopped");
    if (const auto message = ranks_.poll()) {
      pause.reset();
      if (kind_of(message->bytes) == MessageKind::kFailed)
        throw_failure(message->from, read_failed(message->bytes));
      if (kind_of(message->bytes) == MessageKind::kDone) take(read_number(message->bytes), message->from);
    } else if (const auto news = own_ ? own_->take_news() : std::nullopt) {
      if (!news->failures.empty()) throw_failure(0, news->failures.front());
      for (const uint32_t job : news->done) take(job, 0);
    } else {
      std::this_thread::sleep_for(pause.next());
    }
  }
}

}  // namespace bitfed
