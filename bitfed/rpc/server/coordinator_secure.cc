// The part of the coordinator that masks updates: keys and shares before a round's updates, the opening of
// their sum after them. What clients were told is durable before they are told it.

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/rpc/server/coordinator.h"
#include "bitfed_v1.pb.h"

namespace bitfed {
namespace {

using v1::Secure;
using v1::Verdict;
using Phase = SecureServer::Phase;

constexpr auto kPhaseTick = std::chrono::milliseconds(100);
constexpr double kNextKeysSeconds = 600;  // a client takes part with keys that it sent so long ago, and more
constexpr double kOwingSeconds = 1;       // a round does not wait longer for keys that are on their way

}  // namespace

void Coordinator::begin_sum(uint32_t round, uint32_t attempt, const std::vector<uint32_t>& clients,
                            const std::string& broadcast_sha256) {
  const Digest session = session_of(store_.federation(), round, attempt, broadcast_sha256);
  std::unique_lock lock(mutex_);
  // The last sum was open before everybody had answered. Work would reach them after that anyway.
  const auto begin = options_.now();
  const auto owes = [&](uint32_t client) { return owing_.contains(client); };
  while (std::any_of(clients.begin(), clients.end(), owes) && seconds_since(begin) < kOwingSeconds) {
    if (options_.stop && options_.stop()) break;
    wake_.wait_for(lock, kPhaseTick);
  }
  owing_.clear();
  sum_.emplace(
      Sum{round, attempt, text_of(session), SecureServer(session, clients, options_.privacy.min_survivors)});
  SecureServer& server = sum_->server;
  server.restore(store_.sum_phases(round));
  if (server.phase() != Phase::kKeys) return;
  for (const uint32_t client : clients) {
    const auto found = next_keys_.find(client);
    if (found == next_keys_.end()) continue;
    if (seconds_since(found->second.since) < kNextKeysSeconds) server.add_keys(client, found->second.keys);
    next_keys_.erase(found);
  }
  // If all are there, the list goes out with the work.
  if (server.missing().empty() && server.end_keys()) store_.add_sum_phase(round, server.save());
}

// Whether work carries the list of keys, in place of a message of its own.
bool Coordinator::work_has_keys() const {
  return sum_ && sum_->server.phase() == Phase::kShares;
}

void Coordinator::take_next_keys(const Connection& connection, const std::string& bytes) {
  if (bytes.empty() || !options_.privacy.secure_aggregation) return;
  Bytes keys(bytes.begin(), bytes.end());
  if (const uint32_t number = read_keys(keys).number; number != *connection.number)
    throw input_error("keys of the next round: found those of client {}, expected {}", number,
                      *connection.number);
  next_keys_[*connection.number] = {std::move(keys), options_.now()};
  if (owing_.erase(*connection.number) > 0 && owing_.empty()) wake_.notify_all();
}

// Whether it is still open if an update that was accepted will be in a sum.
bool Coordinator::is_undecided(uint32_t round) const {
  return options_.privacy.secure_aggregation && int64_t{round} > std::max(decided_, store_.finished_round());
}

// The verdict on updates that waited for it. To clients that are sent the opening this is one.
void Coordinator::decide(int kind, const std::string& reason) {
  for (const Undecided& update : std::exchange(undecided_, {})) {
    for (auto& [peer, connection] : connections_) {
      if (connection.id != update.connection || connection.ending) continue;
      if (kind == Verdict::ACCEPTED && connection.ready) continue;
      verdict(*peer, *update.offer, kind, reason);
    }
  }
}

void Coordinator::secure(const Connection& connection, const Secure& message) {
  take_next_keys(connection, message.next_keys());
  if (!sum_ || message.round() != sum_->round || message.attempt() != sum_->attempt) return;
  const std::string& content = message.content();
  const std::span bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  bool counts = false;
  if (message.phase() == Secure::KEYS) {
    next_keys_.erase(*connection.number);  // these are the ones, if they were still to come when it began
    counts = sum_->server.add_keys(*connection.number, bytes);
  }
  if (message.phase() == Secure::SHARES) counts = sum_->server.add_shares(*connection.number, bytes);
  if (message.phase() == Secure::OPENING) counts = sum_->server.add_opened(*connection.number, bytes);
  if (!counts) return;
  last_progress_ = options_.now();
  // The round looks at the clock often enough to go on without somebody.
  if (sum_->server.is_complete() || sum_->server.can_open()) wake_.notify_all();
}

// The message of the present phase, to a client that it is for.
void Coordinator::hand_sum(Peer& peer, const Connection& connection) {
  if (!sum_ || sum_->server.phase() == Phase::kKeys || !connection.ready || connection.ending) return;
  if (!sum_->server.has_member(*connection.number)) return;
  v1::FromServer head;
  Secure& message = *head.mutable_secure();
  const Phase phase = sum_->server.phase();
  message.set_phase(phase == Phase::kShares    ? Secure::KEYS
                    : phase == Phase::kUpdates ? Secure::SHARES
                                               : Secure::OPENING);
  message.set_round(sum_->round);
  message.set_attempt(sum_->attempt);
  const Bytes content = sum_->server.message_for(*connection.number);
  message.set_content(content.data(), content.size());
  peer.send(head);
}

void Coordinator::hand_sums() {
  for (auto& [number, peer] : by_number_) hand_sum(*peer, connections_.at(peer));
}

void Coordinator::wait_for_phase(std::unique_lock<std::mutex>& lock, const std::function<bool()>& is_done) {
  const auto begin = options_.now();
  while (!is_done() && seconds_since(begin) < options_.privacy.phase_seconds) {
    check_failure();
    if (options_.stop && options_.stop()) return;
    wake_.wait_for(lock, kPhaseTick);
  }
}

// Keys and shares of the clients of the round. Those that do not send theirs leave it. False: too few are
// left, or the sum is made already; nothing is to be waited for.
bool Coordinator::agree_on_masks(std::unique_lock<std::mutex>& lock) {
  SecureServer& server = sum_->server;
  if (!work_has_keys()) hand_sums();
  while (server.phase() == Phase::kKeys || server.phase() == Phase::kShares) {
    const auto is_wanted = [&](uint32_t client) { return current_->wanted.contains(client); };
    wait_for_phase(lock, [&] {
      const std::vector<uint32_t> missing = server.missing();
      return std::none_of(missing.begin(), missing.end(), is_wanted);
    });
    if (options_.stop && options_.stop()) return false;
    const bool keys = server.phase() == Phase::kKeys;
    if (!(keys ? server.end_keys() : server.end_shares())) {
      events_(Warning{.text = fmt::format("round {}: too few clients sent {} for secure aggregation",
                                          sum_->round, keys ? "keys" : "shares")});
      return false;
    }
    store_.add_sum_phase(sum_->round, server.save());
    hand_sums();
  }
  std::erase_if(current_->wanted, [&](uint32_t client) {
    const bool lost = !server.has_member(client);
    if (lost) events_(ClientLost{.round = sum_->round, .client = client});
    return lost;
  });
  return server.phase() == Phase::kUpdates;
}

Opening Coordinator::open_sum(uint32_t round, const std::vector<uint32_t>& answered,
                              const std::vector<ModularField>& fields) {
  std::unique_lock lock(mutex_);
  const auto give_up = [&](const std::string& why, bool asked) {
    events_(Warning{.text = fmt::format("round {}: nothing was opened: {}", round, why)});
    sum_.reset();
    return Opening{std::nullopt, asked};
  };
  SecureServer& server = sum_->server;
  if (server.phase() != Phase::kOpening) {
    if (!server.end_updates(answered)) {
      return give_up(fmt::format("{} clients sent their update, too few", answered.size()), false);
    }
    store_.add_sum_phase(round, server.save());
  }
  decided_ = round;
  hand_sums();
  decide(Verdict::ACCEPTED, "");
  for (const auto& [number, peer] : by_number_) {
    if (server.has_member(number) && connections_.at(peer).ready) owing_.insert(number);
  }
  wait_for_phase(lock, [&] { return server.can_open(); });
  if (!server.can_open()) return give_up("too few clients answered", true);
  // From here on nothing that clients send changes it.
  const SecureServer opened = std::move(server);
  sum_.reset();
  lock.unlock();
  try {
    return {opened.masks(fields), true};
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kInput) throw;
    lock.lock();
    return give_up(error.what(), true);
  }
}

}  // namespace bitfed
