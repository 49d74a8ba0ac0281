#pragma once

#include <deque>
#include <memory>

#include "bitfed/base/byte_io.h"
#include "bitfed_v1.pb.h"

namespace bitfed {

// What waits to be written to one client, bounded: a client that does not read costs at most two broadcasts,
// which all clients share, and kMaxWaiting messages.
class Outbox {
 public:
  static constexpr size_t kMaxWaiting = 64;

  // `bytes`, where there are any, follow the head in chunks. Work that waits behind other messages is
  // superseded by newer work and by the result. False: too much waits, the client does not read.
  bool push(const v1::FromServer& head, std::shared_ptr<const Bytes> bytes);
  bool empty() const { return waiting_.empty(); }
  void clear() { waiting_.clear(); }
  // The next message to write. Not empty().
  v1::FromServer next();

 private:
  struct Item {
    v1::FromServer head;
    std::shared_ptr<const Bytes> bytes;
    bool begun = false;
    size_t sent = 0;
  };
  std::deque<Item> waiting_;
};

}  // namespace bitfed
