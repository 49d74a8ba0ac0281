#include "bitfed/secure/masking_transport.h"

#include <deque>
#include <map>

#include "bitfed/base/hash/random.h"
#include "bitfed/federated/privacy/update_grid.h"
#include "bitfed/secure/protocol/secure_client.h"
#include "bitfed/secure/protocol/secure_server.h"

namespace bitfed {
namespace {

constexpr const char* kFederation = "simulation";

Secret secret_of(uint64_t seed, uint32_t round, uint32_t client) {
  RandomStream random({seed, "secure aggregation", round, client});
  Secret secret;
  for (uint8_t& byte : secret) byte = static_cast<uint8_t>(random.next_u32());
  return secret;
}

class MaskingTransport : public Transport {
 public:
  MaskingTransport(std::unique_ptr<Transport> clients, uint64_t seed, size_t min_clients, ThreadPool& pool)
      : inner_(std::move(clients)), seed_(seed), min_clients_(min_clients), pool_(pool) {}

  std::vector<uint32_t> present(uint32_t round, uint32_t clients) override {
    return inner_->present(round, clients);
  }

  bool can_mask() const override { return true; }

  // Everybody sends keys and shares; who drops out does so afterwards.
  void begin_sum(uint32_t round, uint32_t attempt, const std::vector<uint32_t>& clients,
                 const std::string& broadcast_sha256) override {
    const Digest session = session_of(kFederation, round, attempt, broadcast_sha256);
    clients_.clear();
    index_.clear();
    server_ = std::make_unique<SecureServer>(session, clients, min_clients_);
    for (const uint32_t client : clients) {
      index_[client] = clients_.size();
      const Secret secret = secret_of(seed_, round, client);
      clients_.emplace_back(
          ClientSession{session, secret},
          std::make_shared<Channel>(derive(secret, "channel", {}), kFederation, client, identity_),
          min_clients_);
    }
    std::vector<Bytes> answers(clients.size());
    pool_.for_each(clients.size(), [&](size_t i) { answers[i] = clients_[i].keys(); });
    for (size_t i = 0; i < clients.size(); ++i) server_->add_keys(clients[i], answers[i]);
    can_open_ = server_->end_keys();
    if (!can_open_) return;
    pool_.for_each(clients.size(),
                   [&](size_t i) { answers[i] = clients_[i].shares_for(server_->message_for(clients[i])); });
    for (size_t i = 0; i < clients.size(); ++i) server_->add_shares(clients[i], answers[i]);
    can_open_ = server_->end_shares();
    if (!can_open_) return;
    pool_.for_each(clients.size(),
                   [&](size_t i) { clients_[i].take_shares(server_->message_for(clients[i])); });
  }

  void run_round(uint32_t round, const Bytes& broadcast, const std::vector<uint32_t>& clients,
                 const std::function<void(ClientResult)>& receive) override {
    if (!can_open_) return;  // too few were chosen: nobody sends anything
    inner_->run_round(round, broadcast, clients, [&](ClientResult result) {
      ModularVector update =
          read_sum_message(result.state ? *result.state : decode(result.upload, "an upload"));
      result.state.reset();  // it is another from here on
      clients_[index_.at(result.client)].mask(&update);
      result.upload = encode(sum_message(update));
      receive(std::move(result));
    });
  }

  Opening open_sum(uint32_t /*round*/, const std::vector<uint32_t>& answered,
                   const std::vector<ModularField>& fields) override {
    if (!server_->end_updates(answered)) return {};
    std::vector<Bytes> answers(answered.size());
    pool_.for_each(answered.size(), [&](size_t i) {
      answers[i] = clients_[index_.at(answered[i])].open(server_->message_for(answered[i]));
    });
    for (size_t i = 0; i < answered.size(); ++i) server_->add_opened(answered[i], answers[i]);
    return {server_->masks(fields), true};
  }

  std::optional<LocalClients> local_clients() const override { return inner_->local_clients(); }
  std::optional<TransportLoad> load() const override { return inner_->load(); }
  std::vector<uint32_t> save(uint32_t round) override { return inner_->save(round); }
  void write_saved() override { inner_->write_saved(); }
  void restore(uint32_t round, const std::vector<uint32_t>& needed) override {
    inner_->restore(round, needed);
  }

 private:
  std::unique_ptr<Transport> inner_;
  uint64_t seed_;
  size_t min_clients_;
  ThreadPool& pool_;
  std::shared_ptr<const Identity> identity_ = std::make_shared<NoIdentity>();
  std::deque<SecureClient> clients_;  // of the round
  std::map<uint32_t, size_t> index_;  // of a client, in clients_
  std::unique_ptr<SecureServer> server_;
  bool can_open_ = false;
};

}  // namespace

std::unique_ptr<Transport> make_masking_transport(std::unique_ptr<Transport> clients, uint64_t seed,
                                                  size_t min_clients, ThreadPool& pool) {
  return std::make_unique<MaskingTransport>(std::move(clients), seed, min_clients, pool);
}

}  // namespace bitfed
