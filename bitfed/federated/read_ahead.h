#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// Reads what will be asked for on a thread of its own, in order, until so many bytes wait to be taken.
class ReadAhead {
 public:
  // `read`: what belongs to a key; empty: nothing, or it cannot be read. Called by that thread.
  ReadAhead(std::function<Bytes(uint32_t key)> read, size_t bytes) : read_(std::move(read)), bytes_(bytes) {}
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Forgets what was wanted before and not taken.
  void want(std::vector<uint32_t> keys);

  // Waits where it is being read. Empty: it was not read, and will not be.
  Bytes take(uint32_t key);

 private:
  void work();
  void next(std::unique_lock<std::mutex>* lock);

  std::function<Bytes(uint32_t key)> read_;
  size_t bytes_;
  std::mutex mutex_;  // of what follows
  std::condition_variable wake_, was_read_;
  std::vector<uint32_t> keys_;  // the next one last
  std::set<uint32_t> left_;     // of these, those that are neither read nor taken
  std::optional<uint32_t> reading_;
  std::map<uint32_t, Bytes> waiting_;
  size_t waiting_bytes_ = 0;
  bool is_ended_ = false;
  std::thread thread_;
};

}  // namespace bitfed
