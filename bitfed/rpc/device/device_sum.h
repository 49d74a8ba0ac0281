#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "bitfed/model/state.h"
#include "bitfed/rpc/device/client_store.h"
#include "bitfed/rpc/device/device_channel.h"
#include "bitfed/run/events.h"

namespace bitfed::v1 {
class FromClient;
class Secure;
class Work;
}  // namespace bitfed::v1

namespace bitfed {

// A device's part in secure aggregation: keys and shares before an update is masked, and the one answer that
// helps to open its sum. Whatever the server must not ask is an input_error. Nothing leaves the device before
// it is kept.
class DeviceSum {
 public:
  // The connection of the moment. `next` waits for the server's next message about a sum; none: newer work
  // has come.
  struct Server {
    std::function<void(const v1::FromClient&)> send;
    std::function<std::optional<v1::Secure>()> next;
  };
  DeviceSum(ClientStore& store, const ClientTrust& trust, Server server, const EventSink& events);

  void join(const std::string& federation, uint32_t number, size_t min_survivors);
  // Over another connection the certificate may be another.
  void reconnect() { channel_.forget(); }
  // Keys for a sum that is still to begin, to be sent ahead: kept until it does, or until they are too old.
  std::string keys_ahead();
  void forget_old_keys();

  // Agrees with the round's clients and sends them shares. False: newer work has come.
  bool begin(const v1::Work& work);
  std::string session() const { return text_of(masks_->session().session); }
  // What the noise of this sum's update is drawn from.
  std::function<uint64_t()> noise() const;
  // Theirs, after which an update can be masked. False: newer work has come.
  bool take_shares(const v1::Work& work);
  void mask(State* update) const;
  // The masked update with this digest leaves the device, and no other of this sum. To be stored with it.
  ClientStore::Sum sends(const v1::Work& work, const std::string& sha256);

  // Helps to open the sum of the last round, once. What the server must not ask is logged and gets no answer.
  // `update`: waits for its verdict. True: it is in the sum, and counts.
  bool open(const v1::Secure& message, const ClientStore::Update* update);

 private:
  ClientStore::NextKeys next_keys();
  std::string published(const ClientStore::NextKeys& next);
  void send(const ClientStore::Sum& sum, int phase, const Bytes& content, const std::string& next = "",
            bool keeps_certificates = false) const;
  std::optional<Bytes> wait_for(uint32_t round, uint32_t attempt, int phase);

  ClientStore& store_;
  Server server_;
  const EventSink& events_;
  DeviceChannel channel_;
  std::string federation_;
  uint32_t number_ = 0;
  size_t min_survivors_ = 0;
  std::optional<SecureClient> masks_;  // of the last update
};

}  // namespace bitfed
