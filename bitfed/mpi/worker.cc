#include "bitfed/mpi/worker.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>

#include "bitfed/base/stopwatch.h"
#include "bitfed/federated/client_round.h"
#include "bitfed/federated/personal_evaluation.h"
#include "bitfed/mpi/messages.h"
#include "bitfed/mpi/pause.h"
#include "bitfed/zoo/zoo.h"

namespace bitfed {
namespace {

constexpr double kProgressSeconds = 0.5;
constexpr size_t kFullMessage = 256 << 10;  // bytes of results that do not wait for more
constexpr double kResultSeconds = 0.2;      // that results wait for more
constexpr double kAheadSeconds = 0.002;     // of work that is left when more is asked for: some answers' time
constexpr auto kWhileTraining = 4 * Pause::kOrdinary;  // nothing but the end of this work is waited for

// What the uploads of this worker's clients add up to. Threads add at the same time, each with a server half
// of its own.
class UploadSums {
 public:
  explicit UploadSums(const Method& method) : method_(method) {}

  // Forgets what a round that was stopped has left.
  void begin_round() {
    for (Half& half : idle_) {
      if (half.is_used) half.server->take_part();
      half.is_used = false;
    }
  }

  // Takes the upload; leaves its size.
  void add(const State& broadcast, ClientResult* result) {
    Half half = take_half(broadcast);
    result->upload_bytes = encoded_size(*result->state);
    half.server->accept(result->client, *result->state);
    result->state.reset();
    result->added_up = true;
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(half));
  }

  // All of it, and the parts of others.
  State take(const State& broadcast, const std::vector<Part>& others) {
    const Half sum = take_half(broadcast);
    for (Half& half : idle_) {
      if (half.is_used) sum.server->accept_part(half.server->take_part());
      half.is_used = false;
    }
    for (const Part& part : others) sum.server->accept_part(part.sum);
    State part = sum.server->take_part();
    idle_.push_back({sum.server, false});
    return part;
  }

 private:
  struct Half {
    std::shared_ptr<ServerHalf> server;
    bool is_used = false;  // in this round
  };

  Half take_half(const State& broadcast) {
    Half half;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        half = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!half.server) half.server = method_.make_server();
    if (!half.is_used) half.server->restore(broadcast);
    half.is_used = true;
    return half;
  }

  const Method& method_;
  std::mutex mutex_;
  std::vector<Half> idle_;
};

struct Job {
  explicit Job(Experiment given)
      : experiment(std::move(given)),
        half(experiment.method->make_client()),
        sums(*experiment.method),
        personal(experiment.train, experiment.partition, experiment.partition_spec.kind == "column",
                 experiment.evaluation.test) {}

  Experiment experiment;
  std::unique_ptr<ClientHalf> half;
  UploadSums sums;
  PersonalEvaluation personal;
  // Of the evaluation data, which this rank predicts in every round; empty: not asked yet.
  std::optional<EvaluationPart> part;
  EvaluationData of_part;
};

Dataset range(const Dataset& dataset, uint64_t begin, uint64_t end) {
  if (begin > end || end > dataset.size())
    throw input_error("a rank's message: found samples {} to {}, expected some of {}", begin, end,
                      dataset.size());
  std::vector<uint32_t> rows(end - begin);
  std::iota(rows.begin(), rows.end(), static_cast<uint32_t>(begin));
  return samples_at(dataset, rows);
}

// What the threads that train hand to the thread that sends.
struct Outbox {
  Results results = {};
  size_t bytes = 0;
  std::vector<Failure> failures = {};
  std::vector<uint32_t> done = {};  // jobs that were run alone
  std::optional<ClientFraction> progress = {};
};

class Worker {
 public:
  Worker(Communicator& ranks, const WorkerOptions& options)
      : ranks_(ranks), options_(options), pool_(options.threads) {}

  // Receives in this thread, the only one that may use MPI; the pool's threads train.
  void run() {
    run_promptly();
    ranks_.send(0, hello_message({options_.program, options_.host, options_.threads, options_.processors}));
    Pause pause, long_pause(kWhileTraining);
    const auto reset = [&] {
      pause.reset();
      long_pause.reset();
    };
    for (;;) {
      if (const auto message = ranks_.poll()) {
        reset();
        if (kind_of(message->bytes) == MessageKind::kEnd) break;
        guarded([&] { dispatch(message->bytes); });
        continue;
      }
      guarded([&] {
        if (send_results()) reset();  // the answer is near
        hand_over_sums();
      });
      std::unique_lock lock(mutex_);
      if (has_news()) continue;
      wake_.wait_for(lock, running_ > 0 && !asked_ ? long_pause.next() : pause.next());
    }
    abandon();
    ranks_.send(0, plain_message(MessageKind::kBye));
  }

 private:
  // Errors go to rank 0.
  void guarded(const std::function<void()>& action) {
    try {
      action();
    } catch (...) {
      ranks_.send(0, failed_message(current_failure()));
    }
  }

  void dispatch(const Bytes& message) {
    switch (kind_of(message)) {
      case MessageKind::kJob:
        load(read_number(message));
        break;
      case MessageKind::kRound:
        begin_round(read_round(message));
        break;
      case MessageKind::kWork:
        start(read_work(message));
        break;
      case MessageKind::kSum:
        sum_is_due_ = true;
        break;
      case MessageKind::kPart:
        parts_.push_back(read_part(message));
        break;
      case MessageKind::kEvaluate:
        evaluate(read_evaluate(message));
        break;
      case MessageKind::kAlone:
        run_alone(read_number(message));
        break;
      default:
        throw failure("a message that only rank 0 receives");
    }
  }

  void begin_round(const RoundStart& start) {
    const Bytes bytes = ranks_.receive_broadcast(start.broadcast_bytes);
    round_ = start;
    broadcast_ = decode(bytes, "broadcast");
    job_->sums.begin_round();
    // A rank behind this one may have been faster.
    std::erase_if(parts_, [&](const Part& part) { return part.number != round_.number; });
    sum_is_due_ = false;
  }

  void load(uint32_t number) {
    Ready ready;
    try {
      job_.reset();
      job_ = std::make_unique<Job>(options_.load(number));
      ready.experiment = experiment_text(job_->experiment);
      ready.device = job_->experiment.device;
    } catch (...) {
      ready.failure = current_failure();
    }
    ranks_.send(0, ready_message(ready));
  }

  void run_alone(uint32_t number) {
    submit([this, number] {
      options_.run_alone(number, [this] { return is_stopped(); });
      const std::lock_guard lock(mutex_);
      outbox_.done.push_back(number);
    });
  }

  // Once this worker's clients and those of the ranks behind it are done.
  void hand_over_sums() {
    if (!sum_is_due_ || parts_.size() < static_cast<size_t>(children_of(ranks_.rank(), ranks_.size())))
      return;
    {
      const std::lock_guard lock(mutex_);
      if (running_ > 0) return;
    }
    ranks_.send(parent_of(ranks_.rank()), part_message({round_.number, job_->sums.take(broadcast_, parts_)}));
    parts_.clear();
    sum_is_due_ = false;
  }

  // In this thread: nothing else goes on meanwhile.
  void evaluate(const EvaluationTask& task) {
    const EvaluationPart& part = task.part;
    const Bytes bytes = ranks_.receive_broadcast(task.model_bytes);
    const std::unique_ptr<Model> model = load_model(decode(bytes, "the round's model"), "the round's model");
    if (job_->part != part) {
      const EvaluationData& all = job_->experiment.evaluation;
      job_->of_part = {range(all.test, part.test_begin, part.test_end),
                       range(all.validation, part.validation_begin, part.validation_end)};
      job_->part = part;
    }
    Confusions confusions{confusion_matrix(*model, job_->of_part.test, pool_), {}};
    if (job_->experiment.evaluation.validation.size() > 0)
      confusions.validation = confusion_matrix(*model, job_->of_part.validation, pool_);
    ranks_.send(0, confusion_message(confusions));
  }

  bool is_stopped() const { return abandoned_ || (options_.stop && options_.stop()); }

  // Runs the action on a thread of the pool; its failure goes to rank 0.
  void submit(const std::function<void()>& action) {
    {
      const std::lock_guard lock(mutex_);
      ++running_;
    }
    pool_.submit([this, action] {
      try {
        if (!abandoned_) action();
      } catch (...) {
        const std::lock_guard lock(mutex_);
        outbox_.failures.push_back(current_failure());
      }
      const std::lock_guard lock(mutex_);
      --running_;
      if (running_ == 0 || has_news()) wake_.notify_all();
    });
  }

  // In groups as large as the client half can train in one step.
  void start(std::vector<ClientTask> tasks) {
    for (const ClientTask& task : tasks) {
      if (task.client >= job_->experiment.partition.size())
        throw input_error("a rank's message: found client {}, expected fewer than {}", task.client,
                          job_->experiment.partition.size());
    }
    {
      const std::lock_guard lock(mutex_);
      asked_ = false;
    }
    const size_t cohort = job_->half->cohort();
    for (size_t begin = 0; begin < tasks.size(); begin += cohort) {
      const size_t end = std::min(tasks.size(), begin + cohort);
      auto group = std::make_shared<std::vector<ClientTask>>(
          std::make_move_iterator(tasks.begin() + static_cast<std::ptrdiff_t>(begin)),
          std::make_move_iterator(tasks.begin() + static_cast<std::ptrdiff_t>(end)));
      submit([this, group] { train(*group); });
    }
  }

  // One group, on a thread of the pool.
  void train(const std::vector<ClientTask>& group) {
    const Stopwatch clock;
    const RoundWork round{*job_->half, broadcast_, job_->experiment.seed, round_.round,
                          [this] { return is_stopped(); }};
    std::vector<Dataset> samples;
    samples.reserve(group.size());
    std::vector<ClientWork> work;
    for (const ClientTask& task : group) {
      samples.push_back(samples_at(job_->experiment.train, job_->experiment.partition[task.client]));
      work.push_back({task.client, samples.back(), task.kept, [this, client = task.client](double fraction) {
                        note({client, fraction});
                      }});
    }
    for (ClientOutcome& outcome : run_cohort(round, work)) {
      if (outcome.error) {
        const std::lock_guard lock(mutex_);
        outbox_.failures.push_back(failure_of(outcome.error));
        continue;
      }
      TrainedClient trained{std::move(outcome.result), std::move(outcome.kept), {}};
      if (trained.result.keeps_state)
        trained.judged = job_->personal.judge(trained.result.client, trained.kept, *job_->half);
      if (trained.result.train_seconds < round_.sum_below) {
        job_->sums.add(broadcast_, &trained.result);
      } else {
        trained.result.upload = encode(*std::exchange(trained.result.state, std::nullopt));
      }
      const std::lock_guard lock(mutex_);
      outbox_.bytes += trained.result.upload.size() + trained.kept.size();
      outbox_.results.clients.push_back(std::move(trained));
    }
    const std::lock_guard lock(mutex_);
    group_seconds_ = clock.seconds();
    outbox_.results.busy_seconds += group_seconds_;
  }

  static Failure failure_of(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (...) {
      return current_failure();
    }
  }

  // Rank 0 draws a bar: it need not receive every step of every client.
  void note(const ClientFraction& progress) {
    const std::lock_guard lock(mutex_);
    if (since_progress_.seconds() < kProgressSeconds) return;
    since_progress_ = Stopwatch();
    outbox_.progress = progress;
    wake_.notify_all();
  }

  // A thread has nothing to do, or the groups that are left will be done before an answer comes.
  bool is_low() const {
    return running_ < options_.threads ||
           static_cast<double>(running_) * group_seconds_ <= kAheadSeconds * options_.threads;
  }

  bool is_due() const {
    return !outbox_.results.clients.empty() &&
           (running_ == 0 || (is_low() && !asked_) || outbox_.bytes >= kFullMessage ||
            since_results_.seconds() >= kResultSeconds);
  }

  bool has_news() const {
    return is_due() || !outbox_.failures.empty() || !outbox_.done.empty() || outbox_.progress.has_value();
  }

  // Failures last: what was trained counts. False: there was nothing to send.
  bool send_results() {
    Outbox outbox;
    {
      const std::lock_guard lock(mutex_);
      if (!has_news()) return false;
      outbox.progress = std::exchange(outbox_.progress, std::nullopt);
      outbox.done = std::exchange(outbox_.done, {});
      if (is_due() || !outbox_.failures.empty()) {
        outbox.results = std::exchange(outbox_.results, {});
        if (is_low() && !asked_) outbox.results.wants_more = asked_ = true;
        outbox_.bytes = 0;
        outbox.failures = std::exchange(outbox_.failures, {});
        since_results_ = Stopwatch();
      }
    }
    if (outbox.progress) ranks_.send(0, progress_message(*outbox.progress));
    if (!outbox.results.clients.empty()) ranks_.send(0, results_message(outbox.results));
    for (const uint32_t job : outbox.done) ranks_.send(0, number_message(MessageKind::kDone, job));
    for (const Failure& failure : outbox.failures) ranks_.send(0, failed_message(failure));
    return true;
  }

  // Ends the training that goes on and forgets the rest.
  void abandon() {
    abandoned_ = true;
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return running_ == 0; });
    outbox_ = {};
  }

  Communicator& ranks_;
  const WorkerOptions& options_;
  std::unique_ptr<Job> job_;
  RoundStart round_;
  State broadcast_;
  std::vector<Part> parts_;  // of the ranks behind this one
  bool sum_is_due_ = false;  // rank 0 has asked for it
  std::atomic<bool> abandoned_ = false;
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  size_t running_ = 0;        // groups, those that wait included
  double group_seconds_ = 1;  // of the last group
  bool asked_ = false;        // for more than was dealt so far
  Outbox outbox_;
  Stopwatch since_progress_;
  Stopwatch since_results_;
  ThreadPool pool_;  // last: its threads end before what they use
};

}  // namespace

void run_worker(Communicator& ranks, const WorkerOptions& options) {
  Worker(ranks, options).run();
}

std::string experiment_text(const Experiment& experiment) {
  return experiment.recipe + "\n" + experiment.depends_on + data_text(experiment);
}

}  // namespace bitfed
