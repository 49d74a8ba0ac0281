#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace bitfed {

// A fixed number of threads that run tasks in the order they were submitted.
class ThreadPool {
 public:
  // 0 threads means one per processor that this process may use.
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();  // finishes the running tasks, drops the waiting ones
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const { return static_cast<unsigned>(workers_.size()); }

  // A task must not throw, nor wait for another task of this pool.
  void submit(std::function<void()> task);

  // Calls body(i) for every i in [0, count) and returns when all are done. Runs on the pool's threads, or on
  // the caller's if one thread is enough or the caller is a task of this pool. Rethrows the first exception
  // of a body.
  void for_each(size_t count, const std::function<void(size_t)>& body);

  // The same for [0, count) in chunks of at most `grain`: body(begin, end).
  void for_ranges(size_t count, size_t grain, const std::function<void(size_t, size_t)>& body);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

// The number of processors that this process may use.
unsigned processor_count();

}  // namespace bitfed
