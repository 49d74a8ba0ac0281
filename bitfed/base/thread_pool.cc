#include "bitfed/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cassert>
#include <exception>
#include <system_error>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

thread_local const ThreadPool* working_for = nullptr;  // the pool whose thread this is

}  // namespace

unsigned processor_count() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

ThreadPool::ThreadPool(unsigned threads) {
  const unsigned count = threads == 0 ? processor_count() : threads;
  workers_.reserve(count);
  try {
    while (workers_.size() < count) workers_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    // The system allows no more. Fewer do as well: results do not depend on their number.
    if (workers_.empty())
      throw failure("no thread can be started: {}; choose fewer (--threads)", error.what());
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    tasks_.clear();
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::submit(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void ThreadPool::work() {
  working_for = this;
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
  }
}

void ThreadPool::for_each(size_t count, const std::function<void(size_t)>& body) {
  // A single runner is faster here than waking a thread. A task that waited for others could wait for ever.
  if (std::min<size_t>(size(), count) == 1 || working_for == this) {
    for (size_t index = 0; index < count; ++index) body(index);
    return;
  }
  std::mutex mutex;
  std::condition_variable done;
  size_t next = 0;
  size_t running = 0;
  std::exception_ptr error;

  // Each runner takes the next index until none is left or one has failed.
  const auto runner = [&] {
    std::unique_lock lock(mutex);
    while (next < count && !error) {
      const size_t index = next++;
      lock.unlock();
      std::exception_ptr caught;
      try {
        body(index);
      } catch (...) {
        caught = std::current_exception();
      }
      lock.lock();
      if (caught && !error) error = caught;
    }
    if (--running == 0) done.notify_all();
  };

  std::unique_lock lock(mutex);
  running = std::min<size_t>(size(), count);
  if (running == 0) return;
  for (size_t i = 0, runners = running; i < runners; ++i) submit(runner);
  done.wait(lock, [&] { return running == 0; });
  if (error) std::rethrow_exception(error);
}

void ThreadPool::for_ranges(size_t count, size_t grain, const std::function<void(size_t, size_t)>& body) {
  assert(grain > 0);
  for_each((count + grain - 1) / grain,
           [&](size_t chunk) { body(chunk * grain, std::min(count, (chunk + 1) * grain)); });
}

}  // namespace bitfed
