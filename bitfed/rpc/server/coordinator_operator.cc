// The part of the coordinator that operators see and use: clients that leave, the policy, the status.

#include "bitfed/base/error.h"
#include "bitfed/rpc/server/coordinator.h"

namespace bitfed {

// A certificate that was good when the connection began. Only a revocation is final; in each case the round
// goes on without the client.
void Coordinator::cut_unwelcome(Peer& peer, Connection& connection, Standing standing) {
  const char* const kind = standing == Standing::kRevoked   ? "revoked"
                           : standing == Standing::kExpired ? "expired"
                                                            : "not-listed";
  const char* const text = standing == Standing::kRevoked   ? "the certificate was revoked"
                           : standing == Standing::kExpired ? "the certificate has expired"
                                                            : "not on the list of allowed clients";
  fault(kind, connection, text);
  release(connection);
  end(peer, connection, standing == Standing::kRevoked ? Ending::kRefused : Ending::kNotNow, text);
  connection.last_heard = options_.now();
  if (connection.number) drop(*connection.number, text);
}

void Coordinator::drop(uint32_t number, const std::string& why) {
  if (dropped_.insert(number).second) store_.set_dropped(number, true);
  away_since_.erase(number);
  if (current_ && current_->wanted.erase(number) > 0) {
    events_(ClientLost{.round = current_->round, .client = number, .text = why});
    wake_.notify_all();
  }
}

// Clients that have been away for too long leave the round.
void Coordinator::drop_those_away() {
  if (!current_) return;
  for (const uint32_t number : std::vector<uint32_t>(current_->wanted.begin(), current_->wanted.end())) {
    const auto since = away_since_.find(number);
    if (since != away_since_.end() && seconds_since(since->second) > options_.max_away_seconds)
      drop(number, fmt::format("away for {:.0f} s", seconds_since(since->second)));
  }
}

void Coordinator::pause(bool paused) {
  const std::lock_guard lock(mutex_);
  store_.set_paused(paused);
  paused_ = paused;
  wake_.notify_all();
}

void Coordinator::end_after_round() {
  const std::lock_guard lock(mutex_);
  ends_after_round_ = true;
  wake_.notify_all();
}

// The part's client is unknown from now on; a connection that it has is ended.
void Coordinator::forget(uint32_t part) {
  if (const auto found = by_number_.find(part); found != by_number_.end()) {
    Connection& connection = connections_.at(found->second);
    release(connection);
    connection.number.reset();
    end(*found->second, connection, Ending::kNotNow, "this client's part was given to another");
    by_number_.erase(found);
  }
  store_.free_part(part);
  names_.erase(part);
  channels_.erase(part);
  left_out_.erase(part);
}

void Coordinator::drop(const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, known] : names_) {
    if (known != name) continue;
    if (const auto found = by_number_.find(number); found != by_number_.end()) {
      Connection& connection = connections_.at(found->second);
      release(connection);
      end(*found->second, connection, Ending::kBusy, "dropped by the operator");
    }
    drop(number, "dropped by the operator");
    return;
  }
  throw input_error("client '{}': not known here", name);
}

void Coordinator::free_part(uint32_t part) {
  const std::lock_guard lock(mutex_);
  if (!names_.contains(part)) throw input_error("part {}: no client holds it", part);
  drop(part, "its part was freed");
  forget(part);
}

RoundPolicy Coordinator::policy() const {
  const std::lock_guard lock(mutex_);
  return options_.policy;
}

void Coordinator::set_policy(const RoundPolicy& policy) {
  const std::lock_guard lock(mutex_);
  store_.set_policy(policy);
  options_.policy = policy;
  wake_.notify_all();
}

CoordinatorStatus Coordinator::status() const {
  const std::lock_guard lock(mutex_);
  CoordinatorStatus status;
  for (const auto& [number, name] : names_) {
    CoordinatorStatus::Client client;
    client.number = number;
    client.name = name;
    if (const auto found = by_number_.find(number); found != by_number_.end()) {
      const Connection& connection = connections_.at(found->second);
      client.connected = true;
      client.ready = connection.ready;
      client.samples = connection.samples;
      client.peer = connection.address;
      client.certificate_seconds = found->second->certificate_seconds_left();
    }
    if (const auto last = last_round_.find(number); last != last_round_.end())
      client.last_round = last->second;
    status.clients.push_back(client);
  }
  status.connections = connections_.size();
  if (current_) {
    status.round = current_->round;
    status.wanted = current_->wanted.size();
  }
  status.waiting_seconds = seconds_since(last_progress_);
  status.waiting_bytes = waiting_bytes_;
  for (const auto& [peer, connection] : connections_) {
    if (connection.offer && !connection.incoming) ++status.waiting_offers;
  }
  status.dropped = dropped_.size();
  status.paused = paused_;
  status.network = network_;
  status.counts = counts_;
  return status;
}

}  // namespace bitfed
