#include "bitfed/mpi/client_threads.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "bitfed/federated/client_round.h"
#include "bitfed/federated/personal_evaluation.h"

namespace bitfed {
namespace {

constexpr double kProgressSeconds = 0.5;
constexpr size_t kFullMessage = 256 << 10;  // bytes of results that do not wait for more
constexpr double kResultSeconds = 0.2;      // that results wait for more
constexpr double kAheadSeconds = 0.002;     // of work that is left when more is asked for: some answers' time

// What the uploads of this rank's clients add up to. Threads add at the same time, each with a server half
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

Dataset range(const Dataset& dataset, uint64_t begin, uint64_t end) {
  if (begin > end || end > dataset.size())
    throw input_error("a rank's message: found samples {} to {}, expected some of {}", begin, end,
                      dataset.size());
  std::vector<uint32_t> rows(end - begin);
  std::iota(rows.begin(), rows.end(), static_cast<uint32_t>(begin));
  return samples_at(dataset, rows);
}

Failure failure_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (...) {
    return current_failure();
  }
}

}  // namespace

struct ClientThreads::Job {
  explicit Job(const Experiment& given)
      : experiment(given),
        half(experiment.method->make_client()),
        sums(*experiment.method),
        personal(experiment.train, experiment.partition, experiment.partition_spec.kind == "column",
                 experiment.evaluation.test) {}

  const Experiment& experiment;
  std::unique_ptr<ClientHalf> half;
  UploadSums sums;
  PersonalEvaluation personal;
  // Of the evaluation data, which this rank predicts in every round; empty: not asked yet.
  std::optional<EvaluationPart> part;
  EvaluationData of_part;
};

// A group that is trained.
class ClientThreads::Begun {
 public:
  explicit Begun(ClientThreads& all) : all_(all) {
    const std::lock_guard lock(all_.mutex_);
    at_ = all_.begun_.insert(all_.clock_.seconds());
  }
  ~Begun() {
    const std::lock_guard lock(all_.mutex_);
    all_.begun_.erase(at_);
  }
  Begun(const Begun&) = delete;
  Begun& operator=(const Begun&) = delete;

 private:
  ClientThreads& all_;
  std::multiset<double>::iterator at_;
};

ClientThreads::ClientThreads(unsigned threads, std::function<bool()> stop, Uploads uploads)
    : threads_(threads), stop_(std::move(stop)), uploads_(uploads), pool_(threads) {}

ClientThreads::~ClientThreads() = default;

void ClientThreads::open(const Experiment& experiment) {
  job_ = std::make_unique<Job>(experiment);
  abandoned_ = false;
}

void ClientThreads::begin_round(const RoundStart& round, const Bytes& broadcast) {
  round_ = round;
  broadcast_ = decode(broadcast, "broadcast");
  job_->sums.begin_round();
  const std::lock_guard lock(mutex_);
  no_more_ = false;
}

void ClientThreads::train(std::vector<ClientTask> tasks) {
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
    submit([this, group] { train_group(*group); });
  }
}

void ClientThreads::expect_no_more() {
  const std::lock_guard lock(mutex_);
  no_more_ = true;
}

State ClientThreads::take_sum(const std::vector<Part>& others) {
  return job_->sums.take(broadcast_, others);
}

void ClientThreads::run_alone(uint32_t number,
                              const std::function<void(const std::function<bool()>& stop)>& job) {
  abandoned_ = false;
  submit([this, number, job] {
    job([this] { return is_stopped(); });
    const std::lock_guard lock(mutex_);
    news_.done.push_back(number);
  });
}

Confusions ClientThreads::evaluate(const Model& model, const EvaluationPart& part) {
  const EvaluationData& all = job_->experiment.evaluation;
  if (job_->part != part) {
    job_->of_part = {range(all.test, part.test_begin, part.test_end),
                     range(all.validation, part.validation_begin, part.validation_end)};
    job_->part = part;
  }
  Confusions confusions{confusion_matrix(model, job_->of_part.test, pool_), {}};
  if (all.validation.size() > 0)
    confusions.validation = confusion_matrix(model, job_->of_part.validation, pool_);
  return confusions;
}

bool ClientThreads::is_idle() const {
  const std::lock_guard lock(mutex_);
  return running_ == 0;
}

std::optional<ClientThreads::News> ClientThreads::take_news() {
  const std::lock_guard lock(mutex_);
  if (!has_news()) return std::nullopt;
  News news;
  news.progress = std::exchange(news_.progress, std::nullopt);
  news.done = std::exchange(news_.done, {});
  if (is_due() || !news_.failures.empty()) {
    const bool more = asks();
    asked_ = asked_ || more;
    news.results = std::exchange(news_.results, {});
    news.results.wants_more = more;
    bytes_ = 0;
    news.failures = std::exchange(news_.failures, {});
    since_results_ = Stopwatch();
  }
  return news;
}

void ClientThreads::wait_for(std::chrono::microseconds longest) {
  std::unique_lock lock(mutex_);
  if (has_news()) return;
  std::chrono::duration<double> wait = longest;
  if (!asked_ && !no_more_ && !begun_.empty())
    wait = std::min(wait, std::chrono::duration<double>(seconds_until_idle() - kAheadSeconds));
  wake_.wait_for(lock, wait);
}

void ClientThreads::abandon() {
  abandoned_ = true;
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return running_ == 0; });
  news_ = {};
  bytes_ = 0;
}

// Runs the action on a thread of the pool; its failure goes to rank 0.
void ClientThreads::submit(const std::function<void()>& action) {
  {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  pool_.submit([this, action] {
    try {
      if (!abandoned_) action();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      news_.failures.push_back(current_failure());
    }
    const std::lock_guard lock(mutex_);
    --running_;
    if (running_ == 0 || has_news()) wake_.notify_all();
  });
}

// One group, on a thread of the pool.
void ClientThreads::train_group(const std::vector<ClientTask>& group) {
  const Stopwatch clock;
  const Begun begun(*this);
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
      news_.failures.push_back(failure_of(outcome.error));
      continue;
    }
    TrainedClient trained{std::move(outcome.result), std::move(outcome.kept), {}};
    ClientResult& result = trained.result;
    if (result.keeps_state) trained.judged = job_->personal.judge(result.client, trained.kept, *job_->half);
    if (uploads_ == Uploads::kEncoded) {
      if (result.train_seconds < round_.sum_below) {
        job_->sums.add(broadcast_, &result);
      } else {
        result.upload = encode(*std::exchange(result.state, std::nullopt));
      }
    }
    const std::lock_guard lock(mutex_);
    bytes_ += result.upload.size() + trained.kept.size();
    news_.results.clients.push_back(std::move(trained));
  }
  const std::lock_guard lock(mutex_);
  group_seconds_ = clock.seconds();
  news_.results.busy_seconds += group_seconds_;
}

// Rank 0 draws a bar: it need not receive every step of every client.
void ClientThreads::note(const ClientFraction& progress) {
  const std::lock_guard lock(mutex_);
  if (since_progress_.seconds() < kProgressSeconds) return;
  since_progress_ = Stopwatch();
  news_.progress = progress;
  wake_.notify_all();
}

// Until a thread has nothing to do, if groups take as long as the last one.
double ClientThreads::seconds_until_idle() const {
  if (running_ < threads_) return 0;
  const double waiting = static_cast<double>(running_ - begun_.size());
  const double first = begun_.empty() ? 0 : *begun_.begin() + group_seconds_ - clock_.seconds();
  return waiting * group_seconds_ / threads_ + std::max(0.0, first);
}

// For more: what is left will be done before an answer comes.
bool ClientThreads::asks() const {
  if (asked_ || no_more_ || (begun_.empty() && news_.results.clients.empty())) return false;
  return seconds_until_idle() <= kAheadSeconds;
}

bool ClientThreads::is_due() const {
  return asks() || (!news_.results.clients.empty() &&
                    (running_ == 0 || bytes_ >= kFullMessage || since_results_.seconds() >= kResultSeconds));
}

bool ClientThreads::has_news() const {
  return is_due() || !news_.failures.empty() || !news_.done.empty() || news_.progress.has_value();
}

}  // namespace bitfed
