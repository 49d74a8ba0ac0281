#pragma once

#include <filesystem>
#include <functional>
#include <map>

#include "bitfed/federated/round_store.h"
#include "bitfed/rpc/server/database.h"

namespace bitfed {

// Everything that a federation's server must not forget, in one file of SQLite's. Any thread may call.
class FederationStore : public RoundStore {
 public:
  explicit FederationStore(const std::filesystem::path& file);

  // A random text, drawn when the file was made: what clients know the federation by.
  const std::string& federation() const { return federation_; }

  // The number of the client of this name; a new name gets `wanted`, or where nothing is wanted the lowest
  // that is free. An input_error where the number is another's, out of range, or none is left.
  uint32_t register_client(const std::string& name, std::optional<uint32_t> wanted, uint32_t clients);
  std::map<uint32_t, std::string> clients() const;

  // The digest of the update of a client that was accepted in a round, also long after its bytes have gone.
  std::optional<std::string> accepted(uint32_t round, uint32_t client) const;

  // The round of the checkpoint; -1: none yet.
  int64_t finished_round() const;

  // Puts of `body` become durable together, when this returns.
  void together(const std::function<void()>& body) { database_.transaction(body); }

  std::optional<std::vector<uint32_t>> chosen(uint32_t round) const override;
  void begin_round(uint32_t round, const std::vector<uint32_t>& clients) override;
  void put(uint32_t round, const ClientResult& result, const std::string& depends_on) override;
  std::optional<ClientResult> find(uint32_t round, uint32_t client,
                                   const std::string& depends_on) const override;
  // The bytes go with the next checkpoint; the digests stay.
  void remove_round(uint32_t round) override;
  void save(uint32_t round, const State& state) override;
  std::optional<State> load() const override;

 private:
  uint32_t lowest_free_number() const;

  mutable Database database_;
  std::string federation_;
  int64_t removable_ = -1;
  int64_t finished_ = -1;
};

}  // namespace bitfed
