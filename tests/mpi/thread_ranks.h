#pragma once

// Ranks that are threads of one process, for tests without MPI.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bitfed/mpi/communicator.h"

namespace bitfed {

class ThreadRanks {
 public:
  explicit ThreadRanks(int size) : inboxes_(static_cast<size_t>(size)) {}

  // Runs `zero` as rank 0, in this thread, and `other` as every other rank.
  void run(const std::function<void(Communicator&)>& zero, const std::function<void(Communicator&)>& other) {
    std::vector<std::jthread> threads;
    for (int rank = 1; rank < size(); ++rank) {
      threads.emplace_back([this, rank, &other] {
        One one(*this, rank);
        other(one);
      });
    }
    One one(*this, 0);
    zero(one);
  }

  size_t sent_bytes() const { return sent_bytes_; }

 private:
  int size() const { return static_cast<int>(inboxes_.size()); }

  class One : public Communicator {
   public:
    One(ThreadRanks& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return all_.size(); }
    void send(int to, Bytes message) override {
      const std::lock_guard lock(all_.mutex_);
      all_.sent_bytes_ += message.size();
      all_.inboxes_[static_cast<size_t>(to)].push_back({rank_, std::move(message)});
    }
    std::optional<Message> poll() override {
      const std::lock_guard lock(all_.mutex_);
      auto& inbox = all_.inboxes_[static_cast<size_t>(rank_)];
      if (inbox.empty()) return std::nullopt;
      Message message = std::move(inbox.front());
      inbox.pop_front();
      return message;
    }
    void broadcast(const Bytes& bytes) override {
      const std::lock_guard lock(all_.mutex_);
      all_.broadcasts_.push_back(bytes);
      all_.wake_.notify_all();
    }
    Bytes receive_broadcast(size_t size) override {
      std::unique_lock lock(all_.mutex_);
      const size_t mine = broadcasts_++;
      all_.wake_.wait(lock, [&] { return all_.broadcasts_.size() > mine; });
      if (all_.broadcasts_[mine].size() != size) throw std::logic_error("a broadcast of another size");
      return all_.broadcasts_[mine];
    }

   private:
    ThreadRanks& all_;
    int rank_;
    size_t broadcasts_ = 0;
  };

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::deque<Communicator::Message>> inboxes_;
  std::vector<Bytes> broadcasts_;
  size_t sent_bytes_ = 0;
};

}  // namespace bitfed
