#include "bitfed/rpc/server/coordinator.h"

#include <algorithm>
#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed_v1.pb.h"

namespace bitfed {
namespace {

using v1::FromClient;
using v1::FromServer;
using v1::Verdict;

constexpr size_t kSpareConnections = 64;  // beyond one for each client
constexpr size_t kLeastChunk = 4096;      // smaller ones are at the sender's expense

void check_name(const std::string& name) {
  const auto fine = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; };
  if (name.empty() || name.size() > kMostNameBytes || !std::all_of(name.begin(), name.end(), fine)) {
    throw input_error("a client's name: expected 1 to {} visible characters without quotes", kMostNameBytes);
  }
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
  events_(ClientFault{.kind = kind,
                      .client = connection.number,
                      .name = connection.name,
                      .peer = connection.address,
                      .text = text});
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

void Coordinator::handshake_failed(const std::string& text) {
  const std::lock_guard lock(mutex_);
  // Anybody can do this without end: all are counted, and some are in the log.
  if (!allowance_of("").take(Clock::now())) {
    ++counts_["handshake"];
    return;
  }
  try {
    fault("handshake", Connection(), text);
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
    const bool asked_for = message.message_case() == FromClient::kChunk && connection.free_chunks > 0;
    if (asked_for) {
      --connection.free_chunks;
    } else if (!may_speak(peer, connection)) {
      return;
    }
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
      events_(ClientDisconnected{
          .client = *connection.number, .name = connection.name, .peer = connection.address});
    }
  });
  connections_.erase(&peer);
  wake_.notify_all();
}

// A client that sends a byte now and then is not silent, and holds its place all the same.
bool Coordinator::is_too_slow(const Connection& connection) const {
  const auto size = static_cast<double>(connection.incoming->size());
  return seconds_since(connection.incoming_since) >
         options_.silence_seconds + size / options_.least_bytes_a_second;
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
      } else if (connection.incoming && (silent > options_.silence_seconds || is_too_slow(connection))) {
        fault("silent", connection, "an update that does not go on, or hardly");
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
  events_(ClientConnected{.client = number,
                          .name = connection.name,
                          .peer = connection.address,
                          .version = message.version().substr(0, kMostNameBytes)});

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
  for (const float mean : shape.pixel_mean) prototype.add_pixel_mean(mean);
  for (const float std : shape.pixel_std) prototype.add_pixel_std(std);
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
  connection.incoming_since = Clock::now();
  waiting_bytes_ += offer.size();
  connection.free_chunks = 1 + offer.size() / kLeastChunk;
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
