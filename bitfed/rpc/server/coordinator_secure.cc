// The part of the coordinator that masks updates: keys and shares before a round's updates, the opening of
// their sum after them. What clients were told is durable before they are told it.

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/rpc/server/coordinator.h"
#include "bitfed_v1.pb.h"

namespace bitfed {
namespace {

using v1::Secure;
using Phase = SecureServer::Phase;

constexpr auto kPhaseTick = std::chrono::milliseconds(100);

}  // namespace

void Coordinator::begin_sum(uint32_t round, uint32_t attempt, const std::vector<uint32_t>& clients,
                            const std::string& broadcast_sha256) {
  const Digest session = session_of(store_.federation(), round, attempt, broadcast_sha256);
  const std::lock_guard lock(mutex_);
  sum_.emplace(
      Sum{round, attempt, text_of(session), SecureServer(session, clients, options_.privacy.min_survivors)});
  sum_->server.restore(store_.sum_phases(round));
}

void Coordinator::secure(const Connection& connection, const Secure& message) {
  if (!sum_ || message.round() != sum_->round || message.attempt() != sum_->attempt) return;
  const std::string& content = message.content();
  const std::span bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  bool counts = false;
  if (message.phase() == Secure::KEYS) counts = sum_->server.add_keys(*connection.number, bytes);
  if (message.phase() == Secure::SHARES) counts = sum_->server.add_shares(*connection.number, bytes);
  if (message.phase() == Secure::OPENING) counts = sum_->server.add_opened(*connection.number, bytes);
  if (!counts) return;
  last_progress_ = options_.now();
  wake_.notify_all();
}

// The message of the present phase, to a client that it is for.
void Coordinator::hand_sum(Peer& peer, const Connection& connection) {
  if (!sum_ || sum_->server.phase() == Phase::kKeys || !connection.ready || connection.ending) return;
  const std::vector<uint32_t>& members = sum_->server.members();
  if (!std::binary_search(members.begin(), members.end(), *connection.number)) return;
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
  hand_sums();
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
  const std::vector<uint32_t>& members = server.members();
  std::erase_if(current_->wanted, [&](uint32_t client) {
    const bool lost = !std::binary_search(members.begin(), members.end(), client);
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
    if (!server.end_updates(answered))
      return give_up(fmt::format("{} clients sent their update, too few", answered.size()), false);
    store_.add_sum_phase(round, server.save());
  }
  hand_sums();
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
