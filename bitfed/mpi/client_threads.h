#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "bitfed/base/stopwatch.h"
#include "bitfed/base/thread_pool.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/mpi/messages.h"

namespace bitfed {

// The threads of a rank that train clients. What they have done is collected for the one thread that sends
// and receives, which calls everything here.
class ClientThreads {
 public:
  // What is handed over together, in this order.
  struct News {
    std::optional<ClientFraction> progress = {};
    Results results = {};
    std::vector<uint32_t> done = {};  // jobs that were run alone
    std::vector<Failure> failures = {};
  };
  enum class Uploads {
    kEncoded,  // to be sent, or added up
    kAsTheyAre,
  };

  // `threads`: clients trained at once. `stop`: the user wants to stop.
  ClientThreads(unsigned threads, std::function<bool()> stop, Uploads uploads);
  ~ClientThreads();
  ClientThreads(const ClientThreads&) = delete;
  ClientThreads& operator=(const ClientThreads&) = delete;

  unsigned threads() const { return threads_; }

  // The experiment of the rounds that follow. It is referred to, until the next one or abandon().
  void open(const Experiment& experiment);

  void begin_round(const RoundStart& round, const Bytes& broadcast);
  // In groups as large as the client half can train in one step.
  void train(std::vector<ClientTask> tasks);
  // No tasks follow in this round: nobody needs to be asked for more.
  void expect_no_more();
  // What the uploads of the round that were added up come to, and the parts of others.
  State take_sum(const std::vector<Part>& others);

  // Runs a job that is no client's; its number is handed over when it is done.
  void run_alone(uint32_t number, const std::function<void(const std::function<bool()>& stop)>& job);

  // In the calling thread and all others.
  Confusions evaluate(const Model& model, const EvaluationPart& part);

  bool is_idle() const;
  // Empty: nothing that is due.
  std::optional<News> take_news();
  // Until there is something due, but no longer than this.
  void wait_for(std::chrono::microseconds longest);

  // Ends the training that goes on and forgets the rest.
  void abandon();

 private:
  struct Job;
  class Begun;

  bool is_stopped() const { return abandoned_ || (stop_ && stop_()); }
  void submit(const std::function<void()>& action);
  void train_group(const std::vector<ClientTask>& group);
  void note(const ClientFraction& progress);
  double seconds_until_idle() const;
  bool asks() const;
  bool is_due() const;
  bool has_news() const;

  unsigned threads_;
  std::function<bool()> stop_;
  Uploads uploads_;
  std::unique_ptr<Job> job_;
  RoundStart round_;
  State broadcast_;
  std::atomic<bool> abandoned_ = false;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable wake_;
  size_t running_ = 0;           // groups, those that wait included
  double group_seconds_ = 1;     // of the last group
  std::multiset<double> begun_;  // when the groups that are trained now were begun, by the clock
  bool asked_ = false;           // for more than was dealt so far
  bool no_more_ = false;         // is dealt in this round
  News news_;
  size_t bytes_ = 0;  // of its results
  const Stopwatch clock_;
  Stopwatch since_progress_;
  Stopwatch since_results_;
  ThreadPool pool_;  // last: its threads end before what they use
};

}  // namespace bitfed
