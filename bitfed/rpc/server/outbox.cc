#include "bitfed/rpc/server/outbox.h"

#include <algorithm>

#include "bitfed/rpc/protocol.h"

namespace bitfed {

bool Outbox::push(const v1::FromServer& head, std::shared_ptr<const Bytes> bytes) {
  if (head.has_work() || head.has_result())
    std::erase_if(waiting_, [](const Item& item) { return item.head.has_work() && !item.begun; });
  if (waiting_.size() >= kMaxWaiting) return false;
  waiting_.push_back({head, std::move(bytes)});
  return true;
}

v1::FromServer Outbox::next() {
  Item& item = waiting_.front();
  v1::FromServer message;
  if (!std::exchange(item.begun, true)) {
    message = item.head;
  } else {
    const size_t size = std::min(kChunkBytes, item.bytes->size() - item.sent);
    message.set_chunk(item.bytes->data() + item.sent, size);
    item.sent += size;
  }
  if (item.bytes == nullptr || item.sent == item.bytes->size()) waiting_.pop_front();
  return message;
}

}  // namespace bitfed
