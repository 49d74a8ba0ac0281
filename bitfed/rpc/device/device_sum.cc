#include "bitfed/rpc/device/device_sum.h"

#include <array>
#include <bit>

#include "bitfed/base/error.h"
#include "bitfed/federated/privacy/update_grid.h"
#include "bitfed_v1.pb.h"

namespace bitfed {

using v1::Secure;

DeviceSum::DeviceSum(ClientStore& store, const ClientTrust& trust, Server server, const EventSink& events)
    : store_(store), server_(std::move(server)), events_(events), channel_(trust) {}

void DeviceSum::join(const std::string& federation, uint32_t number, size_t min_survivors) {
  federation_ = federation;
  number_ = number;
  min_survivors_ = min_survivors;
}

std::string DeviceSum::keys_ahead() {
  const ClientStore::NextKeys keys = next_keys();
  store_.put_next_keys(keys);
  return published(keys);
}

// No sum can begin with them.
void DeviceSum::forget_old_keys() {
  if (const auto& keys = store_.next_keys(); keys && !channel_.may_begin(keys->until))
    store_.forget_next_keys();
}

bool DeviceSum::begin(const v1::Work& work) {
  masks_.reset();
  if (!work.has_masked_attempt())
    throw input_error("the server: found work for an update that is not masked: refused");
  const Digest session = session_of(federation_, work.round(), work.masked_attempt(), work.sha256());
  ClientStore::Sum sum{work.round(), work.masked_attempt(), {}};
  sum.session.session = session;
  const auto& known = store_.sum();
  const bool goes_on = known && known->session.session == session;
  if (goes_on) {
    // What the device keeps has changed since: another update under the same masks would give away how.
    if (const auto last = store_.last_accepted(); last && work.round() <= *last) {
      throw input_error("the server: round {}: this client's update of this sum was accepted: refused",
                        work.round());
    }
  }
  if (const auto opened = store_.last_opened(); opened && work.round() <= *opened) {
    throw input_error("the server: round {}: this client has helped to open a sum of round {}: refused",
                      work.round(), *opened);
  }
  if (goes_on) {
    sum = *known;
  } else {
    const auto& next = store_.next_keys();
    if (next && channel_.may_begin(next->until)) {
      sum.session.secret = next->secret;
      sum.session.channel = next->channel;
    } else if (!work.keys().empty()) {
      throw input_error(
          "the server: round {}: found a list of keys, expected none: this client has sent no keys for it, "
          "or too long ago: refused",
          work.round());
    }
  }
  const auto channel = channel_.of(sum.session, federation_, number_);
  if (sum.session.secret == Secret()) sum.session.secret = random_secret();
  SecureClient client(sum.session, channel, min_survivors_);
  // Kept before anything of it leaves the device.
  const auto keep = [&] { store_.put_sum({sum.round, sum.attempt, client.session()}); };
  if (!client.can_mask()) {
    Bytes shares;
    bool checked = true;  // a list of keys, on this connection
    if (!work.keys().empty()) {
      shares = client.shares_for({reinterpret_cast<const uint8_t*>(work.keys().data()), work.keys().size()});
    } else if (!client.session().key_list.empty()) {
      shares = client.shares();
      checked = false;
    } else {
      keep();
      send(sum, Secure::KEYS, client.keys());
      const auto key_list = wait_for(sum.round, sum.attempt, Secure::KEYS);
      if (!key_list) return false;
      shares = client.shares_for(*key_list);
    }
    keep();
    send(sum, Secure::SHARES, shares, "", checked);
  }
  masks_ = std::move(client);
  return true;
}

std::function<uint64_t()> DeviceSum::noise() const {
  return [stream = std::make_shared<KeyStream>(masks_->noise_seed())] {
    std::array<uint8_t, 8> bytes = {};
    stream->next(bytes);
    return std::bit_cast<uint64_t>(bytes);
  };
}

// They are kept with the update, which is what depends on them.
bool DeviceSum::take_shares(const v1::Work& work) {
  if (masks_->can_mask()) return true;
  const auto peers = wait_for(work.round(), work.masked_attempt(), Secure::SHARES);
  if (peers) masks_->take_shares(*peers);
  return peers.has_value();
}

void DeviceSum::mask(State* update) const {
  ModularVector vector = read_sum_message(*update);
  masks_->mask(&vector);
  *update = sum_message(vector);
}

ClientStore::Sum DeviceSum::sends(const v1::Work& work, const std::string& sha256) {
  masks_->sends(sha256);
  return {work.round(), work.masked_attempt(), masks_->session()};
}

// For a sum that is still to begin: the same until it does, or until they are too old to be sent.
ClientStore::NextKeys DeviceSum::next_keys() {
  if (const auto& kept = store_.next_keys(); kept && channel_.may_be_sent(kept->until)) return *kept;
  const DeviceChannel::Ahead ahead = channel_.ahead(federation_, number_);
  return {random_secret(), ahead.channel->key(), ahead.until};
}

std::string DeviceSum::published(const ClientStore::NextKeys& next) {
  ClientSession session;
  session.secret = next.secret;
  session.channel = next.channel;
  const Bytes keys = keys_of(next.secret, *channel_.of(session, federation_, number_));
  return {keys.begin(), keys.end()};
}

void DeviceSum::send(const ClientStore::Sum& sum, int phase, const Bytes& content, const std::string& next,
                     bool keeps_certificates) const {
  v1::FromClient message;
  Secure& secure = *message.mutable_secure();
  secure.set_phase(static_cast<Secure::Phase>(phase));
  secure.set_round(sum.round);
  secure.set_attempt(sum.attempt);
  secure.set_content(content.data(), content.size());
  secure.set_next_keys(next);
  secure.set_keeps_certificates(keeps_certificates);
  server_.send(message);
}

// Empty: newer work has come.
std::optional<Bytes> DeviceSum::wait_for(uint32_t round, uint32_t attempt, int phase) {
  while (const auto message = server_.next()) {
    if (message->round() == round && message->attempt() == attempt && message->phase() == phase)
      return Bytes(message->content().begin(), message->content().end());
    open(*message, nullptr);
  }
  return std::nullopt;
}

bool DeviceSum::open(const Secure& message, const ClientStore::Update* update) {
  if (message.phase() != Secure::OPENING) return false;
  const auto& sum = store_.sum();
  if (!sum || sum->round != message.round() || sum->attempt != message.attempt()) return false;
  try {
    const Bytes survivors(message.content().begin(), message.content().end());
    if (!sum->answer.empty()) {
      // What it was made of is gone.
      if (survivors != sum->session.survivors)
        throw input_error("the server sends a second, different list of survivors for the same sum: refused");
      const std::string next = keys_ahead();
      send(*sum, Secure::OPENING, sum->answer, next);
      return false;
    }
    // Those of the update are at hand unless the device was started again; checking all keys takes long.
    if (!masks_ || masks_->session().session != sum->session.session)
      masks_.emplace(sum->session, channel_.of(sum->session, federation_, number_), min_survivors_);
    ClientStore::Sum opened{sum->round, sum->attempt, {}, masks_->open(survivors)};
    opened.session.session = masks_->session().session;
    opened.session.survivors = survivors;
    opened.session.update = masks_->session().update;
    const bool accepts = update != nullptr && update->broadcast_sha256 == session();
    const ClientStore::NextKeys next = next_keys();
    // The answer is durable, and the secrets that it was made of are erased.
    store_.open_sum(opened, next, accepts);
    masks_.reset();
    send(opened, Secure::OPENING, opened.answer, published(next));
    return accepts;
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kInput) throw;
    events_(Warning{.text = fmt::format("round {}: {}", message.round(), error.what())});
  }
  return false;
}

}  // namespace bitfed
