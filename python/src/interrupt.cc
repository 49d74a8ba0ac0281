#include "python/src/interrupt.h"

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace nb = nanobind;

namespace bitfed::python {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(50);

// A thread's work, and how it ended.
class Job {
 public:
  explicit Job(const std::function<void(const Stop&)>& work)
      : thread_([this, &work] {
          try {
            work([this] { return stop_.load(); });
          } catch (...) {
            error_ = std::current_exception();
          }
          const std::lock_guard lock(mutex_);
          ended_ = true;
          wake_.notify_one();
        }) {}

  void ask_to_stop() { stop_ = true; }

  // Whether the work has ended, waiting for it for a moment.
  bool wait() {
    const nb::gil_scoped_release release;
    std::unique_lock lock(mutex_);
    return wake_.wait_for(lock, kPollInterval, [this] { return ended_; });
  }

  std::exception_ptr join() {
    const nb::gil_scoped_release release;
    thread_.join();
    return error_;
  }

 private:
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace

void run_interruptibly(const std::function<void(const Stop& stop)>& work, const std::function<void()>& poll) {
  Job job(work);
  std::exception_ptr interrupted;
  for (bool ended = false; !ended;) {
    ended = job.wait();
    if (interrupted) continue;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (poll) poll();
    } catch (...) {
      interrupted = std::current_exception();
      job.ask_to_stop();
    }
  }
  const std::exception_ptr error = job.join();
  if (interrupted) std::rethrow_exception(interrupted);
  if (error) std::rethrow_exception(error);
}

}  // namespace bitfed::python
