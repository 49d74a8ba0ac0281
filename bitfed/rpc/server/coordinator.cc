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

constexpr size_t kSpareConnections = 64;  // for names that are not registered yet
constexpr size_t kMaxPerName = 4;         // connections of one name, old ones that are ending included
constexpr size_t kMinChunk = 4096;        // smaller ones are at the sender's expense
constexpr double kAliveSeconds = 30;      // without a sweep
constexpr size_t kMaxTextBytes = 500;     // of a text about a client, or from it, in the log

void check_name(const std::string& name) {
  const auto fine = [](unsigned char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; };
  if (name.empty() || name.size() > kMaxNameBytes || !std::all_of(name.begin(), name.end(), fine)) {
    throw input_error("a client's name: expected 1 to {} visible characters without quotes", kMaxNameBytes);
  }
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options, FederationStore& store, EventSink events)
    : options_(std::move(options)),
      store_(store),
      events_(std::move(events)),
      dropped_(store.dropped()),
      names_(store.clients()) {
  if (const auto changed = store.policy()) options_.policy = *changed;
  paused_ = store.paused();
  last_progress_ = options_.now();
  last_sweep_ = options_.now();
}

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
  log(connection.name, ClientFault{.kind = kind,
                                   .client = connection.number,
                                   .name = printable(connection.name, kMaxNameBytes),
                                   .peer = connection.address,
                                   .text = printable(text, kMaxTextBytes)});
}

// A client's lines in the log are limited; those left out are counted in its next line, and in
// `log-left-out`.
void Coordinator::log(const std::string& name, auto event) {
  const auto now = options_.now();
  LogLines& lines =
      log_lines_.try_emplace(name, LogLines{Allowance(options_.log_allowance, now)}).first->second;
  if (!lines.allowance.take(now)) {
    ++lines.left_out;
    ++counts_["log-left-out"];
    return;
  }
  if (lines.left_out > 0) event.left_out = std::exchange(lines.left_out, 0);
  events_(std::move(event));
}

Allowance& Coordinator::allowance_of(const std::string& name) {
  return allowances_.try_emplace(name, options_.allowance, options_.now()).first->second;
}

// Takes a message from the client's allowance, or ends the connection where it has none left.
bool Coordinator::may_speak(Peer& peer, Connection& connection) {
  if (allowance_of(connection.name).take(options_.now())) return true;
  // A client that reconnects at once is logged only if it was welcomed in between.
  if (connection.number) fault("flood", connection, "more messages than its allowance");
  end(peer, connection, Ending::kBusy, "too many messages: come back later");
  return false;
}

void Coordinator::opened(Peer& peer, const std::string& name, const std::string& address,
                         std::optional<uint32_t> part) {
  const std::lock_guard lock(mutex_);
  Connection& connection = connections_[&peer];
  connection.id = ++next_id_;
  connection.name = name;
  connection.opened_as = name;
  connection.part = part;
  connection.address = address;
  connection.last_heard = options_.now();
  ++counts_["connection"];
  const size_t places = ++places_[name];
  bool allowed = true;  // every attempt counts, whatever becomes of it
  if (!name.empty()) guard(peer, [&] { allowed = may_speak(peer, connection); });
  if (!allowed) return;
  if (!name.empty() && places > kMaxPerName) {
    ++counts_["crowded"];
    end(peer, connection, Ending::kBusy, "too many connections with this client's name");
  } else if (active_count() > options_.clients + kSpareConnections && !is_registered(name)) {
    ++counts_["crowded"];
    end(peer, connection, Ending::kBusy, "too many connections");
  }
}

size_t Coordinator::active_count() const {
  return static_cast<size_t>(std::count_if(connections_.begin(), connections_.end(),
                                           [](const auto& entry) { return !entry.second.ending; }));
}

bool Coordinator::is_registered(const std::string& name) const {
  return std::any_of(names_.begin(), names_.end(), [&](const auto& entry) { return entry.second == name; });
}

void Coordinator::leave_place(const Connection& connection) {
  const auto found = places_.find(connection.opened_as);
  if (--found->second == 0) places_.erase(found);
}

void Coordinator::refused(const std::string& name, const std::string& address, const std::string& text) {
  const std::lock_guard lock(mutex_);
  Connection connection;
  connection.name = name;
  connection.address = address;
  try {
    fault("refused", connection, text);
  } catch (...) {
    failure_ = std::current_exception();
    wake_.notify_all();
  }
}

bool Coordinator::asked_as_operator(const std::string& name, const std::string& address,
                                    const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (!allowance_of(name).take(options_.now())) {
      ++counts_["flood"];
      return false;
    }
  }
  refused(name, address, text);
  return true;
}

void Coordinator::handshake_failed(const std::string& text) {
  const std::lock_guard lock(mutex_);
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
  connection.last_heard = options_.now();
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
      last_progress_ = options_.now();
      take_next_keys(connection, message.ready().next_keys());
      if (result_ == nullptr) {
        hand_work(peer, connection);
        if (!work_has_keys()) hand_sum(peer, connection);
      }
      wake_.notify_all();
    } else if (message.has_offer()) {
      if (connection.offer) throw input_error("found an update offered before the verdict on the last one");
      const std::string& update = message.offer().update();
      if (!update.empty() && (update.size() != message.offer().size() || update.size() > kMaxUpdateInOffer)) {
        throw input_error("found {} bytes in the offer of an update of {}, expected all, and at most {}",
                          update.size(), message.offer().size(), kMaxUpdateInOffer);
      }
      connection.offer = std::make_unique<v1::Offer>(message.offer());
      connection.offer->clear_update();  // if it must wait its bytes are asked for later
      offered(peer, connection, update);
    } else if (message.message_case() == FromClient::kChunk) {
      if (!connection.incoming) throw input_error("found bytes that were not asked for");
      arrived(connection, message.chunk());
    } else if (message.has_failed()) {
      failed(connection, message.failed());
    } else if (message.message_case() == FromClient::kRenew) {
      renew(peer, connection, message.renew());
    } else if (message.has_secure()) {
      secure(connection, message.secure());
    } else {
      throw input_error("found a message of a kind that this server does not know");
    }
  });
}

// Bytes of an update that was wanted.
void Coordinator::arrived(Connection& connection, std::string_view bytes) {
  if (!connection.incoming->add(bytes)) return;
  arrivals_.push_back({connection.id, *connection.number, std::move(connection.offer),
                       *std::exchange(connection.incoming, std::nullopt)});
  wake_.notify_all();
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
        next_keys_.erase(*connection.number);
        owing_.erase(*connection.number);
        away_since_[*connection.number] = options_.now();
      }
      if (connection.told_result && cleanly) have_result_.insert(*connection.number);
      log(connection.name,
          ClientDisconnected{
              .client = *connection.number, .name = connection.name, .peer = connection.address});
    }
  });
  leave_place(connection);
  connections_.erase(&peer);
  wake_.notify_all();
}

bool Coordinator::is_alive() const {
  return seconds_since(last_sweep_) < kAliveSeconds;
}

void Coordinator::set_network(const NetworkStatus& network) {
  const std::lock_guard lock(mutex_);
  network_ = network;
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

// A part that the list of allowed clients reserves is taken from another name that holds it.
uint32_t Coordinator::register_client(const Connection& connection, const v1::Hello& message) {
  const auto asked = message.has_part() ? std::optional(message.part()) : std::nullopt;
  if (!connection.part) return store_.register_client(connection.name, asked, options_.clients);
  if (asked && *asked != *connection.part) {
    throw input_error("client '{}' asks for part {}, but part {} is reserved for it", connection.name, *asked,
                      *connection.part);
  }
  const auto owner = names_.find(*connection.part);
  if (owner != names_.end() && owner->second != connection.name) forget(*connection.part);
  return store_.register_client(connection.name, connection.part, options_.clients);
}

// A device that has less than the server has accepted of it: what it keeps for itself is older than its
// updates, and its next update comes from another state than in an uninterrupted run. Earlier builds do not
// say what they have.
void Coordinator::check_not_restored(const Connection& connection, const v1::Hello& message) {
  const auto newest = store_.newest_accepted(*connection.number);
  const bool without_state = message.federation().empty();
  if (!newest || (!without_state && !message.has_after_round())) return;
  if (!without_state && message.after_round() > *newest) return;
  ++counts_["restored"];
  const std::string found = without_state ? "no state"
                            : message.after_round() == 0
                                ? "the state before its first update"
                                : fmt::format("the state after round {}", message.after_round() - 1);
  log(connection.name,
      Warning{.text =
                  fmt::format("client '{}' comes with {}, but an update of round {} was accepted: it was "
                              "restored from an older copy or lost its state, and the model will be another",
                              connection.name, found, *newest)});
}

void Coordinator::hello(Peer& peer, Connection& connection, const v1::Hello& message) {
  if (connection.number) throw input_error("found hello twice");
  const auto refuse = [&](const std::string& text, Ending ending = Ending::kRefused) {
    fault("refused", connection, text);
    end(peer, connection, ending, text);
  };
  const auto protocol = common_protocol(message.least_protocol(), message.most_protocol());
  if (!protocol) {
    const bool old = message.most_protocol() < kMinProtocol;
    refuse(fmt::format("this server speaks protocol {} to {}, this client {} to {}: update the {}",
                       kMinProtocol, kMaxProtocol, message.least_protocol(), message.most_protocol(),
                       old ? "client" : "server"));
    return;
  }
  if (!message.federation().empty() && message.federation() != store_.federation()) {
    refuse(fmt::format("this server is federation {}, the client's state belongs to {}", store_.federation(),
                       printable(message.federation(), kMaxNameBytes)));
    return;
  }
  if (options_.privacy.secure_aggregation && message.masks() != kMaskProtocol) {
    refuse(fmt::format("this federation masks updates by protocol {}, this client by {}: update the {}",
                       kMaskProtocol, message.masks() == 0 ? "none" : std::to_string(message.masks()),
                       message.masks() < kMaskProtocol ? "client" : "server"));
    return;
  }
  const bool known = is_registered(connection.name);
  try {
    connection.number = register_client(connection, message);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kInput) throw;
    refuse(error.what(), Ending::kNotNow);
    return;
  }
  const uint32_t number = *connection.number;
  names_[number] = connection.name;
  away_since_.erase(number);
  if (dropped_.erase(number) > 0) store_.set_dropped(number, false);
  if (const auto before = by_number_.find(number); before != by_number_.end()) {
    Connection& old = connections_.at(before->second);
    release(old);
    end(*before->second, old, Ending::kReplaced, "another connection has come with this client's name");
  }
  next_keys_.erase(number);
  owing_.erase(number);
  by_number_[number] = &peer;
  log(connection.name, ClientConnected{.client = number,
                                       .name = connection.name,
                                       .peer = connection.address,
                                       .version = printable(message.version(), kMaxNameBytes)});
  if (known) check_not_restored(connection, message);

  FromServer answer;
  v1::Welcome& welcome = *answer.mutable_welcome();
  welcome.set_protocol(*protocol);
  welcome.set_federation(store_.federation());
  welcome.set_number(number);
  welcome.set_seed(options_.seed);
  welcome.set_recipe(options_.recipe);
  welcome.set_renews(options_.renew != nullptr);
  welcome.set_max_update_in_offer(kMaxUpdateInOffer);
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
  verdict.set_reason(printable(reason, kMaxTextBytes));
  peer.send(answer);
}

// What becomes of an update that is offered. One whose round is still to begin waits, and so does one for
// which there is no room. `update`: its bytes, if they have come with the offer.
void Coordinator::offered(Peer& peer, Connection& connection, std::string_view update) {
  if (!connection.offer || connection.incoming) return;
  const v1::Offer& offer = *connection.offer;
  const auto settle = [&](Verdict::Kind kind, const std::string& reason) {
    verdict(peer, offer, kind, reason);
    connection.offer.reset();
  };
  if (const auto known = store_.accepted(offer.round(), *connection.number)) {
    if (*known == offer.sha256()) {
      ++counts_["repeated"];
      if (is_undecided(offer.round())) {
        undecided_.push_back({connection.id, std::move(connection.offer)});
      } else {
        settle(Verdict::ACCEPTED, "");
      }
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
  if (offer.broadcast_sha256() != current_->offered_for) {
    fault("wrong-broadcast", connection, "an update of another broadcast");
    settle(Verdict::DISCARDED, "it was trained from another broadcast");
    return;
  }
  if (const uint64_t limit = max_update_bytes(); offer.size() > limit) {
    fault("oversized", connection, fmt::format("an update of {} bytes", offer.size()));
    settle(Verdict::REFUSED, fmt::format("found {} bytes, expected at most {}", offer.size(), limit));
    current_->wanted.erase(*connection.number);
    wake_.notify_all();
    return;
  }
  if (waiting_bytes_ > 0 && waiting_bytes_ + offer.size() > options_.max_waiting_bytes) return;
  connection.incoming.emplace(offer.size(), offer.sha256(), options_.max_update_bytes);
  connection.incoming_since = options_.now();
  waiting_bytes_ += offer.size();
  if (!update.empty()) {
    arrived(connection, update);
    return;
  }
  connection.free_chunks = 1 + offer.size() / kMinChunk;
  verdict(peer, offer, Verdict::WANTED, "");
}

void Coordinator::judge_waiting_offers() {
  for (auto& [peer, connection] : connections_) {
    if (connection.number && !connection.ending) offered(*peer, connection);
  }
}

void Coordinator::failed(Connection& connection, const v1::Failed& message) {
  connection.channels.clear();  // whatever it was, all certificates come with the next list of keys
  if (!current_ || message.round() != current_->round) return;
  fault("failed", connection, message.reason());
  if (current_->wanted.erase(*connection.number) > 0 && message.has_about())
    complained(connection, message.about());
  wake_.notify_all();
}

void Coordinator::renew(Peer& peer, const Connection& connection, const std::string& request) {
  if (!options_.renew)
    throw input_error("found a request for a certificate, expected none: this server has no TLS");
  FromServer answer;
  answer.set_renewed(options_.renew(connection.name, request));
  peer.send(answer);
}

void Coordinator::hand_work(Peer& peer, const Connection& connection) {
  if (!current_ || !connection.ready || !current_->wanted.contains(*connection.number)) return;
  if (sum_) next_keys_.erase(*connection.number);  // it begins the sum with those that it has sent last
  FromServer head;
  v1::Work& work = *head.mutable_work();
  work.set_round(current_->round);
  work.set_size(current_->broadcast->size());
  work.set_sha256(current_->sha256);
  if (sum_) work.set_masked_attempt(sum_->attempt);
  if (work_has_keys() && sum_->server.has_member(*connection.number)) {
    const Bytes keys = sum_->server.message_for(*connection.number, connection.channels);
    work.set_keys(keys.data(), keys.size());
  }
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

void Coordinator::warn(const std::string& text) {
  warn("", text);
}

void Coordinator::warn(const std::string& name, const std::string& text) {
  const std::lock_guard lock(mutex_);
  ++counts_["warning"];
  try {
    log(name, Warning{.text = printable(text, kMaxTextBytes)});
  } catch (...) {
    failure_ = std::current_exception();
    wake_.notify_all();
  }
}

void Coordinator::stop() {
  const std::lock_guard lock(mutex_);
  for (auto& [peer, connection] : connections_) end(*peer, connection, Ending::kStopping, "the server stops");
}

}  // namespace bitfed
