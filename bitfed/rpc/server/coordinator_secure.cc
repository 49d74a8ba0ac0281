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
constexpr size_t kMaxChannels = 256;      // of others that a connection knows

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
  next_keys_[*connection.number] = {
      checked_keys(connection, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                   "keys of the next round"),
      options_.now()};
  if (owing_.erase(*connection.number) > 0 && owing_.empty()) wake_.notify_all();
}

// Keys that a neighbour would refuse are the fault of the client that sends them, and of no other. In a list
// of keys they would make all its neighbours refuse the list.
Bytes Coordinator::checked_keys(const Connection& connection, std::span<const uint8_t> bytes,
                                const char* what) {
  const RoundKeys keys = read_keys(bytes);
  if (keys.number != *connection.number)
    throw input_error("{}: found those of client {}, expected {}", what, keys.number, *connection.number);
  if (options_.identity != nullptr) {
    const std::string name =
        options_.identity->check(keys.certificate, signed_text(store_.federation(), keys), keys.signature);
    if (!name.empty() && name != connection.name)
      throw input_error("{}: found those of '{}', expected those of '{}'", what, name, connection.name);
  }
  const auto known = channels_.find(keys.number);
  if (known == channels_.end() || known->second != keys.channel) {
    static const KeyPair kAny(random_secret());
    kAny.agree(keys.channel);  // throws for a key that nobody can agree with
    for (const auto& [number, channel] : channels_) {
      if (channel == keys.channel)
        throw input_error("{}: found the key of client {}, expected another", what, number);
    }
    channels_[keys.number] = keys.channel;
  }
  return {bytes.begin(), bytes.end()};
}

// A client says that it cannot open the shares of another. Only the two of them can know.
void Coordinator::complained(const Connection& connection, uint32_t about) {
  if (!sum_ || sum_->server.phase() != Phase::kUpdates) return;
  if (!sum_->server.are_neighbours(*connection.number, about)) return;
  if (complaints_round_ != sum_->round) complaints_.clear();
  complaints_round_ = sum_->round;
  complaints_.push_back({*connection.number, about});
}

// After a sum that was not opened. Of the two ends of a complaint one is to blame, so that both are left out
// of the next attempt; first those that have to do with most complaints. Whoever complains of many is left
// out itself, and whoever complains of one goes with it: to keep one client out takes another.
void Coordinator::judge_complaints(uint32_t round) {
  std::vector<Complaint> left = std::exchange(complaints_, {});
  if (complaints_round_ != round) return;
  while (!left.empty()) {
    std::map<uint32_t, size_t> count;
    for (const Complaint& complaint : left) {
      ++count[complaint.of];
      ++count[complaint.about];
    }
    size_t most = 0;
    for (const auto& [client, times] : count) most = std::max(most, times);
    std::erase_if(left, [&](const Complaint& complaint) {
      return count.at(complaint.of) == most || count.at(complaint.about) == most;
    });
    for (const auto& [client, times] : count) {
      if (times == most) leave_out(client, round);
    }
  }
}

// Twice as many rounds each time.
void Coordinator::leave_out(uint32_t client, uint32_t from_round) {
  LeftOut& left_out = left_out_[client];
  left_out.until = from_round + (uint32_t{1} << std::min(left_out.times++, 20u)) - 1;
  ++counts_["left-out"];
  const auto found = names_.find(client);
  const std::string name = found != names_.end() ? found->second : "";
  log(name,
      Warning{.text = fmt::format("client {} '{}' is left out of masked rounds up to {}: it, or another that "
                                  "complains of it, has kept a sum from being opened",
                                  client, name, left_out.until)});
}

// Nobody, if too few would be left.
std::set<uint32_t> Coordinator::left_out(uint32_t round) const {
  std::set<uint32_t> result;
  for (const auto& [client, left_out] : left_out_) {
    if (round <= left_out.until && by_number_.contains(client)) result.insert(client);
  }
  if (by_number_.size() < result.size() + options_.privacy.min_survivors) result.clear();
  return result;
}

// Logs what did not fit.
void Coordinator::blame(const std::vector<SecureServer::Fault>& faults) {
  for (const SecureServer::Fault& found : faults) {
    const uint32_t client = found.clients.front();
    Connection gone;
    gone.number = client;
    if (const auto known = names_.find(client); known != names_.end()) gone.name = known->second;
    const auto peer = by_number_.find(client);
    fault("wrong-shares", peer != by_number_.end() ? connections_.at(peer->second) : gone, found.text);
  }
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

void Coordinator::secure(Connection& connection, const Secure& message) {
  take_next_keys(connection, message.next_keys());
  if (!sum_ || message.round() != sum_->round || message.attempt() != sum_->attempt) return;
  const std::string& content = message.content();
  const std::span bytes(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  bool counts = false;
  try {
    if (message.phase() == Secure::KEYS) {
      next_keys_.erase(*connection.number);  // these are the ones, if they were still to come when it began
      counts = sum_->server.add_keys(*connection.number, checked_keys(connection, bytes, "keys of a round"));
    }
    if (message.phase() == Secure::SHARES) {
      counts = sum_->server.add_shares(*connection.number, bytes);
      if (counts && message.keeps_certificates()) {
        if (connection.channels.size() > kMaxChannels) connection.channels.clear();
        sum_->server.add_channels(*connection.number, &connection.channels);
      }
    }
    if (message.phase() == Secure::OPENING) counts = sum_->server.add_opened(*connection.number, bytes);
  } catch (const Error&) {
    // The round does not wait for it.
    if (current_ && current_->wanted.erase(*connection.number) > 0) wake_.notify_all();
    throw;
  }
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
  const Bytes content = sum_->server.message_for(*connection.number, connection.channels);
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
  std::vector<SecureServer::Fault> faults;
  SecureServer::Secrets secrets;
  std::string why;
  const auto opens = [&] {
    faults.clear();
    try {
      secrets = server.secrets(&faults);
      return true;
    } catch (const Error& error) {
      if (error.kind() != Error::Kind::kInput) throw;
      why = error.what();
      return false;
    }
  };
  const auto lose = [&] {
    for (const uint32_t client : faults.back().clients) leave_out(client, round + 1);
    blame(faults);
    return give_up(why, true);
  };
  if (!opens()) {
    // With the answers of all that are there it may.
    wait_for_phase(lock, [&] {
      const std::vector<uint32_t> missing = server.missing();
      return std::none_of(missing.begin(), missing.end(),
                          [&](uint32_t client) { return by_number_.contains(client); });
    });
    if (!opens()) return lose();
  }
  // From here on nothing that clients send changes it.
  const SecureServer opened = std::move(server);
  sum_.reset();
  blame(faults);
  lock.unlock();
  try {
    return {opened.masks(fields, secrets, &faults), true};
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kInput) throw;
    lock.lock();
    why = error.what();
    faults.erase(faults.begin(), faults.end() - 1);  // the others are logged
    return lose();
  }
}

}  // namespace bitfed
