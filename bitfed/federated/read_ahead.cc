#include "bitfed/federated/read_ahead.h"

#include <algorithm>
#include <utility>

namespace bitfed {

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ReadAhead::want(std::vector<uint32_t> keys) {
  std::unique_lock lock(mutex_);
  was_read_.wait(lock, [this] { return !reading_; });
  waiting_.clear();
  waiting_bytes_ = 0;
  left_ = {keys.begin(), keys.end()};
  keys_ = std::move(keys);
  std::reverse(keys_.begin(), keys_.end());
  if (keys_.empty()) return;
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  wake_.notify_all();
}

Bytes ReadAhead::take(uint32_t key) {
  std::unique_lock lock(mutex_);
  left_.erase(key);
  was_read_.wait(lock, [&] { return reading_ != key; });
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return {};
  Bytes bytes = std::move(found->second);
  waiting_.erase(found);
  const bool was_full = waiting_bytes_ >= bytes_;
  waiting_bytes_ -= bytes.size();
  if (was_full) wake_.notify_all();
  return bytes;
}

void ReadAhead::work() {
  std::unique_lock lock(mutex_);
  while (!is_ended_) {
    if (keys_.empty() || waiting_bytes_ >= bytes_) {
      wake_.wait(lock);
    } else {
      next(&lock);
    }
  }
}

void ReadAhead::next(std::unique_lock<std::mutex>* lock) {
  const uint32_t key = keys_.back();
  keys_.pop_back();
  if (left_.erase(key) == 0) return;
  reading_ = key;
  lock->unlock();
  Bytes bytes = read_(key);
  lock->lock();
  reading_.reset();
  if (!bytes.empty()) {
    waiting_bytes_ += bytes.size();
    waiting_[key] = std::move(bytes);
  }
  was_read_.notify_all();
}

}  // namespace bitfed
