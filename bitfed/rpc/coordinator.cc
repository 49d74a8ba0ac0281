#include "bitfed/rpc/coordinator.h"

#include <algorithm>
#include <cmath>

#include "bitfed/base/digest.h"
#include "bitfed/base/error.h"
#include "bitfed_v1.pb.h"

namespace bitfed {
namespace {

using v1::FromClient;
using v1::FromServer;
using v1::Verdict;

constexpr auto kTick = std::chrono::milliseconds(100);  // how soon a stop or a deadline is seen
constexpr size_t kSpareConnections = 64;                // beyond one for each client
constexpr size_t kLeastChunk = 4096;                    // smaller ones are at the sender's expense

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void check_name(const std::string& name) {
  const auto fine = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; };
  if (name.empty() || name.size() > kMostNameBytes || !std::all_of(name.begin(), name.end(), fine)) {
    throw input_error("a client's name: expected 1 to {} visible characters without quotes", kMostNameBytes);
  }
}

ClientResult result_of(uint32_t client, const v1::Offer& offer, Bytes upload) {
  ClientResult result;
  result.client = client;
  result.upload = std::move(upload);
  // What a client says of its own effort is for the log alone, but the log must be able to hold it.
  result.samples = std::min<uint64_t>(offer.samples(), uint64_t{1} << 48);
  result.trained_samples = std::min<uint64_t>(offer.trained_samples(), uint64_t{1} << 48);
  result.train_seconds =
      std::isfinite(offer.train_seconds()) ? std::clamp(offer.train_seconds(), 0.0, 1e9) : 0;
  return result;
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options, FederationStore& store, EventSink events)
    : options_(std::move(options)), store_(store), events_(std::move(events)) {}

Coordinator::~Coordinator() = default;

// Runs a handler. What is wrong with a message ends its connection; what fails here (a full disk) ends the
// federation, on its own thread.
void Coordinator::guard(Peer& peer, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    const auto found = connections_.find(&peer);
    if (error.kind() == Error::Kind::kInput) {
      if (found != connections_.end()) {
        fault("violation", found->second, error.what());
        end(peer, found->second, Ending::kViolation, error.what());
      }
      return;
    }
    failure_ = std::current_exception();
    wake_.notify_all();
  } catch (...) {
    failure_ = std::current_exception();
    wake_.notify_all();
  }
}

void Coordinator::check_failure() {
  if (failure_) std::rethrow_exception(failure_);
}

void Coordinator::fault(const std::string& kind, const Connection& connection, const std::string& text) {
  ++counts_[kind];
  events_({{"event", "client-fault"},
           {"kind", kind},
           {"client", connection.number ? Event(*connection.number) : Event()},
           {"name", connection.name},
           {"peer", connection.address},
           {"text", text}});
}

Allowance& Coordinator::allowance_of(const std::string& name) {
  return allowances_.try_emplace(name, options_.allowance, Clock::now()).first->second;
}

// Takes a message from the client's allowance, or ends the connection where it has none left.
bool Coordinator::may_speak(Peer& peer, Connection& connection) {
  if (allowance_of(connection.name).take(Clock::now())) return true;
  // One that comes back at once is told in the log only when it said something in between.
  if (connection.number) fault("flood", connection, "more messages than its allowance");
  end(peer, connection, Ending::kBusy, "too many messages: come back later");
  return false;
}

void Coordinator::opened(Peer& peer, const std::string& name, const std::string& address) {
  const std::lock_guard lock(mutex_);
  Connection& connection = connections_[&peer];
  connection.id = ++next_id_;
  connection.name = name;
  connection.address = address;
  connection.last_heard = Clock::now();
  ++counts_["connection"];
  if (connections_.size() > options_.clients + kSpareConnections) {
    end(peer, connection, Ending::kBusy, "too many connections");
  } else if (!name.empty()) {
    guard(peer, [&] { may_speak(peer, connection); });
  }
}

void Coordinator::refused(const std::string& address, const std::string& text) {
  const std::lock_guard lock(mutex_);
  Connection connection;
  connection.address = address;
  try {
    fault("refused", connection, text);
  } catch (...) {
    failure_ = std::current_exception();
    wake_.notify_all();
  }
}

void Coordinator::received(Peer& peer, const FromClient& message) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(&peer);
  if (found == connections_.end() || found->second.ending) return;
  Connection& connection = found->second;
  connection.last_heard = Clock::now();
  guard(peer, [&] {
    if (!connection.number && !message.has_hello())
      throw input_error("found another message, expected hello first");
    if (connection.name.empty()) connection.name = message.hello().name();
    check_name(connection.name);
    if (!may_speak(peer, connection)) return;
    if (message.has_hello()) {
      hello(peer, connection, message.hello());
      return;
    }
    if (message.has_ready()) {
      connection.samples = message.ready().samples();
      if (std::exchange(connection.ready, true)) throw input_error("found ready twice");
      if (result_ == nullptr) hand_work(peer, connection);
      wake_.notify_all();
    } else if (message.has_offer()) {
      if (connection.offer) throw input_error("found an update offered before the verdict on the last one");
      connection.offer = std::make_unique<v1::Offer>(message.offer());
      offered(peer, connection);
    } else if (message.message_case() == FromClient::kChunk) {
      if (!connection.incoming) throw input_error("found bytes that nobody asked for");
      if (!connection.incoming->add(message.chunk())) return;
      arrivals_.push_back({connection.id, *connection.number, std::move(connection.offer),
                           *std::exchange(connection.incoming, std::nullopt)});
      wake_.notify_all();
    } else if (message.has_failed()) {
      failed(connection, message.failed());
    } else {
      throw input_error("found a message of a kind that this server does not know");
    }
  });
}

void Coordinator::closed(Peer& peer, bool cleanly) {
  const std::lock_guard lock(mutex_);
  const auto found = connections_.find(&peer);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  guard(peer, [&] {
    release(connection);
    if (connection.number) {
      if (const auto owner = by_number_.find(*connection.number);
          owner != by_number_.end() && owner->second == &peer) {
        by_number_.erase(owner);
      }
      if (connection.told_result && cleanly) have_result_.insert(*connection.number);
      events_({{"event", "client-disconnected"},
               {"client", *connection.number},
               {"name", connection.name},
               {"peer", connection.address}});
    }
  });
  connections_.erase(&peer);
  wake_.notify_all();
}

void Coordinator::sweep(const std::function<bool(const Peer&)>& is_welcome) {
  const std::lock_guard lock(mutex_);
  std::erase_if(allowances_, [](const auto& entry) { return entry.second.is_full(Clock::now()); });
  for (auto& [peer, connection] : connections_) {
    guard(*peer, [&, peer = peer, &connection = connection] {
      const double silent = seconds_since(connection.last_heard);
      if (connection.ending) {
        // It was told to go, and has not: it may not be reading.
        if (silent > options_.hello_seconds) peer->cut();
      } else if (!is_welcome(*peer)) {
        fault("revoked", connection, "the certificate is no longer accepted");
        end(*peer, connection, Ending::kRefused, "the certificate is no longer accepted");
        connection.last_heard = Clock::now();
      } else if (!connection.number && silent > options_.hello_seconds) {
        fault("silent", connection, "a connection that says nothing");
        connection.ending = true;
        peer->cut();
      } else if (connection.incoming && silent > options_.silence_seconds) {
        fault("silent", connection, "an update that does not go on");
        connection.ending = true;
        peer->cut();
      }
    });
  }
}

void Coordinator::end(Peer& peer, Connection& connection, Ending ending, const std::string& text) {
  if (connection.ending) return;
  connection.ending = true;
  connection.ready = false;
  peer.end(ending, text);
}

// The bytes that an update on its way in takes are free again.
void Coordinator::release(Connection& connection) {
  if (!connection.incoming) return;
  waiting_bytes_ -= connection.incoming->size();
  connection.incoming.reset();
  connection.offer.reset();
  judge_waiting_offers();
}

void Coordinator::hello(Peer& peer, Connection& connection, const v1::Hello& message) {
  if (connection.number) throw input_error("found hello twice");
  const auto refuse = [&](const std::string& text) {
    fault("refused", connection, text);
    end(peer, connection, Ending::kRefused, text);
  };
  const auto protocol = common_protocol(message.least_protocol(), message.most_protocol());
  if (!protocol) {
    const bool old = message.most_protocol() < kLeastProtocol;
    refuse(fmt::format("this server speaks protocol {} to {}, this client {} to {}: update the {}",
                       kLeastProtocol, kMostProtocol, message.least_protocol(), message.most_protocol(),
                       old ? "client" : "server"));
    return;
  }
  if (!message.federation().empty() && message.federation() != store_.federation()) {
    refuse(fmt::format("this server is federation {}, the client's state belongs to {}", store_.federation(),
                       message.federation().substr(0, kMostNameBytes)));
    return;
  }
  try {
    const auto wanted = message.has_part() ? std::optional(message.part()) : std::nullopt;
    connection.number = store_.register_client(connection.name, wanted, options_.clients);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kInput) throw;
    refuse(error.what());
    return;
  }
  const uint32_t number = *connection.number;
  if (const auto before = by_number_.find(number); before != by_number_.end()) {
    Connection& old = connections_.at(before->second);
    release(old);
    end(*before->second, old, Ending::kReplaced, "another connection has come with this client's name");
  }
  by_number_[number] = &peer;
  events_({{"event", "client-connected"},
           {"client", number},
           {"name", connection.name},
           {"peer", connection.address},
           {"version", message.version().substr(0, kMostNameBytes)}});

  FromServer answer;
  v1::Welcome& welcome = *answer.mutable_welcome();
  welcome.set_protocol(*protocol);
  welcome.set_federation(store_.federation());
  welcome.set_number(number);
  welcome.set_seed(options_.seed);
  welcome.set_recipe(options_.recipe);
  v1::Prototype& prototype = *welcome.mutable_prototype();
  const Dataset& shape = options_.prototype;
  prototype.set_name(shape.name);
  prototype.set_height(static_cast<uint32_t>(shape.height));
  prototype.set_width(static_cast<uint32_t>(shape.width));
  prototype.set_channels(static_cast<uint32_t>(shape.channels));
  for (const std::string& column : shape.columns) prototype.add_columns(column);
  for (const std::string& name : shape.class_names) prototype.add_class_names(name);
  peer.send(answer);
  if (result_ != nullptr) hand_result(peer, connection);
}

void Coordinator::verdict(Peer& peer, const v1::Offer& offer, int kind, const std::string& reason) {
  FromServer answer;
  Verdict& verdict = *answer.mutable_verdict();
  verdict.set_kind(static_cast<Verdict::Kind>(kind));
  verdict.set_round(offer.round());
  verdict.set_sha256(offer.sha256());
  verdict.set_reason(reason);
  peer.send(answer);
}

// What becomes of an update that is offered. One whose round is still to begin waits, and so does one for
// which there is no room.
void Coordinator::offered(Peer& peer, Connection& connection) {
  if (!connection.offer || connection.incoming) return;
  const v1::Offer& offer = *connection.offer;
  const auto settle = [&](Verdict::Kind kind, const std::string& reason) {
    verdict(peer, offer, kind, reason);
    connection.offer.reset();
  };
  if (const auto known = store_.accepted(offer.round(), *connection.number)) {
    if (*known == offer.sha256()) {
      ++counts_["repeated"];
      settle(Verdict::ACCEPTED, "");
    } else {
      fault("conflict", connection, fmt::format("another update of round {} was accepted", offer.round()));
      settle(Verdict::REFUSED, "another update of this round was accepted");
    }
    return;
  }
  if (int64_t{offer.round()} <= store_.finished_round()) {
    fault("late", connection, fmt::format("an update of round {}, which is over", offer.round()));
    settle(Verdict::DISCARDED, "the round is over");
    return;
  }
  if (!current_) {
    if (int64_t{offer.round()} > store_.finished_round() + 2) {
      fault("wrong-round", connection, fmt::format("an update of round {}, far ahead", offer.round()));
      settle(Verdict::DISCARDED, "the round has not begun");
    }
    return;
  }
  if (offer.round() != current_->round || !current_->wanted.contains(*connection.number)) {
    fault("wrong-round", connection,
          fmt::format("an update of round {} that was not asked for", offer.round()));
    settle(Verdict::DISCARDED, "it was not asked for");
    return;
  }
  if (offer.broadcast_sha256() != current_->sha256) {
    fault("wrong-broadcast", connection, "an update of another broadcast");
    settle(Verdict::DISCARDED, "it was trained from another broadcast");
    return;
  }
  if (offer.size() > options_.most_update_bytes) {
    fault("oversized", connection, fmt::format("an update of {} bytes", offer.size()));
    settle(Verdict::REFUSED,
           fmt::format("found {} bytes, expected at most {}", offer.size(), options_.most_update_bytes));
    current_->wanted.erase(*connection.number);
    wake_.notify_all();
    return;
  }
  if (waiting_bytes_ > 0 && waiting_bytes_ + offer.size() > options_.most_waiting_bytes) return;
  connection.incoming.emplace(offer.size(), offer.sha256(), options_.most_update_bytes);
  waiting_bytes_ += offer.size();
  allowance_of(connection.name)
      .grant(2 + static_cast<double>(offer.size() / kLeastChunk));  // with this offer
  verdict(peer, offer, Verdict::WANTED, "");
}

void Coordinator::judge_waiting_offers() {
  for (auto& [peer, connection] : connections_) {
    if (connection.number && !connection.ending) offered(*peer, connection);
  }
}

void Coordinator::failed(Connection& connection, const v1::Failed& message) {
  if (!current_ || message.round() != current_->round) return;
  fault("failed", connection, message.reason().substr(0, 500));
  current_->wanted.erase(*connection.number);
  wake_.notify_all();
}

void Coordinator::hand_work(Peer& peer, const Connection& connection) {
  if (!current_ || !connection.ready || !current_->wanted.contains(*connection.number)) return;
  FromServer head;
  v1::Work& work = *head.mutable_work();
  work.set_round(current_->round);
  work.set_size(current_->broadcast->size());
  work.set_sha256(current_->sha256);
  peer.send(head, current_->broadcast);
}

void Coordinator::hand_result(Peer& peer, Connection& connection) {
  if (std::exchange(connection.told_result, true)) return;
  FromServer head;
  v1::Result& result = *head.mutable_result();
  result.set_rounds(result_rounds_);
  result.set_size(result_->size());
  result.set_sha256(result_sha256_);
  peer.send(head, result_);
}

size_t Coordinator::ready_count() const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [](const auto& entry) { return entry.second.ready; }));
}

std::vector<uint32_t> Coordinator::present(uint32_t round, uint32_t clients) {
  std::unique_lock lock(mutex_);
  discard_arrivals();
  judge_waiting_offers();
  bool told = false;
  while (ready_count() < options_.policy.minimum_clients) {
    check_failure();
    if (options_.stop && options_.stop()) return {};
    if (!std::exchange(told, true)) {
      events_({{"event", "waiting-for-clients"},
               {"round", round},
               {"present", ready_count()},
               {"needed", options_.policy.minimum_clients}});
    }
    wake_.wait_for(lock, kTick);
  }
  check_failure();
  std::vector<uint32_t> numbers;
  for (const auto& [number, peer] : by_number_) {
    if (number < clients && connections_.at(peer).ready) numbers.push_back(number);
  }
  return numbers;
}

bool Coordinator::is_over(size_t chosen, Clock::time_point begin) const {
  if (current_->wanted.empty()) return true;
  const RoundPolicy& policy = options_.policy;
  const auto quorum = static_cast<size_t>(std::ceil(policy.quorum * static_cast<double>(chosen) - 1e-9));
  if (current_->answered >= std::max<size_t>(quorum, 1)) return true;
  return policy.deadline_seconds > 0 && seconds_since(begin) >= policy.deadline_seconds &&
         current_->answered >= std::min<size_t>(policy.least_answers, chosen);
}

void Coordinator::run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                            const std::function<void(ClientResult)>& receive) {
  const auto begun_with = store_.chosen(round);
  const size_t chosen = begun_with ? begun_with->size() : clients.size();
  const auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  current_.emplace();
  current_->round = round;
  current_->broadcast = std::make_shared<const Bytes>(broadcast);
  current_->sha256 = sha256_hex(broadcast);
  current_->wanted.insert(clients.begin(), clients.end());
  current_->answered = chosen - clients.size();
  for (auto& [number, peer] : by_number_) hand_work(*peer, connections_.at(peer));
  judge_waiting_offers();
  while (true) {
    check_failure();
    if (options_.stop && options_.stop()) break;
    if (!arrivals_.empty()) take(std::exchange(arrivals_, {}), receive, lock);
    if (is_over(chosen, begin)) break;
    if (arrivals_.empty()) wake_.wait_for(lock, kTick);
  }
  for (const uint32_t client : current_->wanted) {
    if (!options_.stop || !options_.stop())
      events_({{"event", "client-lost"}, {"round", round}, {"client", client}});
  }
  current_.reset();
}

// Lets the federation have the updates that have come, makes them durable together, and only then tells
// their clients.
void Coordinator::take(std::deque<Arrival> arrivals, const std::function<void(ClientResult)>& receive,
                       std::unique_lock<std::mutex>& lock) {
  struct Answer {
    Verdict::Kind kind = Verdict::ACCEPTED;
    std::string reason;
    bool repeated = false;
  };
  std::vector<Answer> answers(arrivals.size());
  const uint32_t round = current_->round;
  lock.unlock();
  store_.together([&] {
    for (size_t i = 0; i < arrivals.size(); ++i) {
      Arrival& arrival = arrivals[i];
      Answer& answer = answers[i];
      if (arrival.offer->round() != round) {
        answer = {Verdict::DISCARDED, "the round is over", false};
        continue;
      }
      if (const auto known = store_.accepted(round, arrival.client)) {
        answer.repeated = true;
        if (*known != arrival.offer->sha256())
          answer = {Verdict::REFUSED, "another update of this round was accepted", true};
        continue;
      }
      try {
        receive(result_of(arrival.client, *arrival.offer, arrival.incoming.take()));
      } catch (const Error& error) {
        // What does not fit is the client's affair; the round goes on without it.
        if (error.kind() != Error::Kind::kInput) throw;
        answer = {Verdict::REFUSED, error.what(), false};
      }
    }
  });
  lock.lock();
  for (size_t i = 0; i < arrivals.size(); ++i) {
    const Arrival& arrival = arrivals[i];
    waiting_bytes_ -= arrival.incoming.size();
    const auto sender = std::find_if(connections_.begin(), connections_.end(), [&](const auto& entry) {
      return entry.second.id == arrival.connection;
    });
    Connection gone;
    gone.number = arrival.client;
    const Connection& connection = sender != connections_.end() ? sender->second : gone;
    if (answers[i].kind != Verdict::DISCARDED) current_->wanted.erase(arrival.client);
    if (answers[i].kind == Verdict::ACCEPTED && !answers[i].repeated) {
      ++current_->answered;
      ++counts_["accepted"];
      last_round_[arrival.client] = round;
    }
    if (answers[i].kind == Verdict::DISCARDED)
      fault("late", connection, fmt::format("an update of round {}, which is over", arrival.offer->round()));
    if (answers[i].kind == Verdict::REFUSED)
      fault("rejected", connection, fmt::format("an update of round {}: {}", round, answers[i].reason));
    if (sender != connections_.end() && !connection.ending)
      verdict(*sender->first, *arrival.offer, answers[i].kind, answers[i].reason);
  }
  judge_waiting_offers();
}

// Updates that were complete when their round was over already.
void Coordinator::discard_arrivals() {
  for (const Arrival& arrival : std::exchange(arrivals_, {})) {
    waiting_bytes_ -= arrival.incoming.size();
    for (auto& [peer, connection] : connections_) {
      if (connection.id != arrival.connection || connection.ending) continue;
      fault("late", connection, fmt::format("an update of round {}, which is over", arrival.offer->round()));
      verdict(*peer, *arrival.offer, Verdict::DISCARDED, "the round is over");
    }
  }
}

void Coordinator::hand_out(uint32_t rounds, Bytes model, double seconds) {
  std::unique_lock lock(mutex_);
  result_sha256_ = sha256_hex(model);
  result_ = std::make_shared<const Bytes>(std::move(model));
  result_rounds_ = rounds;
  discard_arrivals();
  for (auto& [number, peer] : by_number_) hand_result(*peer, connections_.at(peer));
  judge_waiting_offers();
  const size_t known = store_.clients().size();
  const auto begin = Clock::now();
  while (have_result_.size() < known && seconds_since(begin) < seconds) {
    if (options_.stop && options_.stop()) return;
    discard_arrivals();
    wake_.wait_for(lock, kTick);
  }
}

void Coordinator::stop() {
  const std::lock_guard lock(mutex_);
  for (auto& [peer, connection] : connections_) end(*peer, connection, Ending::kStopping, "the server stops");
}

CoordinatorStatus Coordinator::status() const {
  const std::lock_guard lock(mutex_);
  CoordinatorStatus status;
  for (const auto& [number, name] : store_.clients()) {
    CoordinatorStatus::Client client;
    client.number = number;
    client.name = name;
    if (const auto found = by_number_.find(number); found != by_number_.end()) {
      const Connection& connection = connections_.at(found->second);
      client.connected = true;
      client.ready = connection.ready;
      client.samples = connection.samples;
      client.peer = connection.address;
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
  status.counts = counts_;
  return status;
}

}  // namespace bitfed
