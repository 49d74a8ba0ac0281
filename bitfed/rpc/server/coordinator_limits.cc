// The part of the coordinator that ends connections which take up room for nothing.

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/rpc/server/coordinator.h"
#include "bitfed_v1.pb.h"

namespace bitfed {
namespace {

constexpr uint64_t kUpdateSlack = 1 << 20;  // for headers and figures
constexpr double kBytesPerSecondIfShort = 1 << 20;

}  // namespace

// A client that sends a byte now and then is not silent, and takes up room all the same. While others wait
// for that room it must be as fast as a usual connection.
bool Coordinator::is_too_slow(const Connection& connection) const {
  const auto size = static_cast<double>(connection.incoming->size());
  const double rate = room_is_short() ? kBytesPerSecondIfShort : options_.min_bytes_per_second;
  return seconds_since(connection.incoming_since) > options_.silence_seconds + size / rate;
}

// Whether an update waits for the room that others take.
bool Coordinator::room_is_short() const {
  return std::any_of(connections_.begin(), connections_.end(), [&](const auto& entry) {
    const Connection& connection = entry.second;
    return connection.offer && !connection.incoming && current_ &&
           connection.offer->round() == current_->round;
  });
}

// An update is about as large as what it was trained from, or as the model: the limit is twice that.
uint64_t Coordinator::max_update_bytes() const {
  const uint64_t broadcast = current_ ? current_->broadcast->size() : 0;
  const uint64_t model = std::max(broadcast, options_.raw_upload_bytes);
  return std::min(options_.max_update_bytes, 2 * model + kUpdateSlack);
}

// Its client leaves the round: it would only offer the update again.
void Coordinator::cut_slow(Peer& peer, Connection& connection) {
  fault("silent", connection, "an update that does not go on, or hardly");
  const bool short_of_room = room_is_short();
  connection.ending = true;
  peer.cut();
  release(connection);
  if (short_of_room && current_ && current_->wanted.erase(*connection.number) > 0) {
    events_(ClientLost{.round = current_->round, .client = *connection.number});
    wake_.notify_all();
  }
}

void Coordinator::sweep(const std::function<Standing(const Peer&)>& standing_of) {
  const std::lock_guard lock(mutex_);
  std::erase_if(allowances_, [now = options_.now()](const auto& entry) { return entry.second.is_full(now); });
  std::erase_if(log_lines_, [now = options_.now()](const auto& entry) {
    return entry.second.left_out == 0 && entry.second.allowance.is_full(now);
  });
  for (auto& [peer, connection] : connections_) {
    guard(*peer, [&, peer = peer, &connection = connection] {
      const double silent = seconds_since(connection.last_heard);
      if (connection.ending) {
        // It was asked to close and has not: it may not be reading.
        if (silent > options_.hello_seconds) peer->cut();
      } else if (const Standing standing = standing_of(*peer); standing != Standing::kWelcome) {
        cut_unwelcome(*peer, connection, standing);
      } else if (!connection.number && silent > options_.hello_seconds) {
        fault("silent", connection, "a connection without a message");
        connection.ending = true;
        peer->cut();
      } else if (peer->stalled_seconds() > options_.max_stall_seconds) {
        fault("stalled", connection, "a client that does not read what is sent to it");
        connection.ending = true;
        peer->cut();
      } else if (connection.incoming && (silent > options_.silence_seconds || is_too_slow(connection))) {
        cut_slow(*peer, connection);
      }
    });
  }
  drop_those_away();
  last_sweep_ = options_.now();
  wake_.notify_all();
}

}  // namespace bitfed
