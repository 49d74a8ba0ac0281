#include "bitfed/mpi/worker.h"

#include <algorithm>
#include <thread>

#include "bitfed/mpi/client_threads.h"
#include "bitfed/mpi/messages.h"
#include "bitfed/mpi/pause.h"
#include "bitfed/zoo/zoo.h"

namespace bitfed {
namespace {

constexpr auto kWhileTraining = 4 * Pause::kOrdinary;  // nothing but the end of this work is waited for

class Worker {
 public:
  Worker(Communicator& ranks, const WorkerOptions& options)
      : ranks_(ranks),
        options_(options),
        clients_(options.threads, options.stop, ClientThreads::Uploads::kEncoded) {}

  // Receives in this thread, the only one that may use MPI; others train.
  void run() {
    run_promptly();
    ranks_.send(0, hello_message({options_.program, options_.host, options_.threads, options_.processors}));
    Pause pause, long_pause(kWhileTraining, Pause::kBesideTraining);
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
        if (send_news()) reset();  // the answer is near
        hand_over_sums();
      });
      if (!clients_.is_idle()) {
        const auto longest = long_pause.next();
        clients_.wait_for(asked_ ? std::min(longest, Pause::kOrdinary) : longest);
      } else if (pause.is_short()) {
        std::this_thread::yield();
      } else {
        clients_.wait_for(pause.next());
      }
    }
    clients_.abandon();
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
        asked_ = false;
        clients_.train(read_work(message));
        break;
      case MessageKind::kNoMore:
        clients_.expect_no_more();
        sum_is_due_ = round_.sum_below > 0;
        break;
      case MessageKind::kPart:
        parts_.push_back(read_part(message));
        break;
      case MessageKind::kEvaluate:
        evaluate(read_evaluate(message));
        break;
      case MessageKind::kAlone: {
        const uint32_t number = read_number(message);
        clients_.run_alone(number, [this, number](const auto& stop) { options_.run_alone(number, stop); });
        break;
      }
      default:
        throw failure("a message that only rank 0 receives");
    }
  }

  void begin_round(const RoundStart& start) {
    round_ = start;
    clients_.begin_round(round_, received(start.broadcast));
    // A rank behind this one may have been faster.
    std::erase_if(parts_, [&](const Part& part) { return part.number != round_.number; });
    sum_is_due_ = asked_ = false;
  }

  Bytes received(const Shared& shared) {
    return shared.follows > 0 ? ranks_.receive_broadcast(shared.follows) : shared.bytes;
  }

  void load(uint32_t number) {
    Ready ready;
    try {
      experiment_ = std::make_unique<Experiment>(options_.load(number));
      clients_.open(*experiment_);
      ready.experiment = experiment_text(*experiment_);
      ready.device = experiment_->device;
    } catch (...) {
      ready.failure = current_failure();
    }
    ranks_.send(0, ready_message(ready));
  }

  // Once this worker's clients and those of the ranks behind it are done.
  void hand_over_sums() {
    if (!sum_is_due_ || parts_.size() < static_cast<size_t>(children_of(ranks_.rank(), ranks_.size())) ||
        !clients_.is_idle())
      return;
    ranks_.send(parent_of(ranks_.rank()), part_message({round_.number, clients_.take_sum(parts_)}));
    parts_.clear();
    sum_is_due_ = false;
  }

  // In this thread: nothing else goes on meanwhile.
  void evaluate(const EvaluationTask& task) {
    const Bytes bytes = received(task.model);
    const std::unique_ptr<Model> model = load_model(decode(bytes, "the round's model"), "the round's model");
    ranks_.send(0, confusion_message(clients_.evaluate(*model, task.part)));
  }

  // Failures last: what was trained counts. False: there was nothing to send.
  bool send_news() {
    const std::optional<ClientThreads::News> news = clients_.take_news();
    if (!news) return false;
    if (news->progress) ranks_.send(0, progress_message(*news->progress));
    if (!news->results.clients.empty() || news->results.wants_more)
      ranks_.send(0, results_message(news->results));
    asked_ = asked_ || news->results.wants_more;
    for (const uint32_t job : news->done) ranks_.send(0, number_message(MessageKind::kDone, job));
    for (const Failure& failure : news->failures) ranks_.send(0, failed_message(failure));
    return true;
  }

  Communicator& ranks_;
  const WorkerOptions& options_;
  std::unique_ptr<Experiment> experiment_;
  RoundStart round_;
  std::vector<Part> parts_;  // of the ranks behind this one
  bool sum_is_due_ = false;  // no clients follow
  bool asked_ = false;       // for more clients
  ClientThreads clients_;
};

}  // namespace

void run_worker(Communicator& ranks, const WorkerOptions& options) {
  Worker(ranks, options).run();
}

std::string experiment_text(const Experiment& experiment) {
  return experiment.recipe + "\n" + experiment.depends_on + data_text(experiment);
}

}  // namespace bitfed
