#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "bitfed/federated/experiment.h"
#include "bitfed/federated/round_store.h"
#include "bitfed/rpc/server/database.h"

namespace bitfed {

// Everything that a federation's server must not forget, in one file of SQLite's. Any thread may call.
class FederationStore : public RoundStore {
 public:
  // Chosen clients and digests of the last `kept_rounds` finished rounds are kept; of older rounds each
  // client's newest digest.
  explicit FederationStore(const std::filesystem::path& file, uint32_t kept_rounds = 1000);

  // A random text, drawn when the file was made: what clients know the federation by.
  const std::string& federation() const { return federation_; }

  // The number of the client of this name; a new name gets `wanted`, or where nothing is wanted the lowest
  // that is free. An input_error where the number is another's, out of range, or none is left.
  uint32_t register_client(const std::string& name, std::optional<uint32_t> wanted, uint32_t clients);
  std::map<uint32_t, std::string> clients() const;

  // The part's name is forgotten, so that another can take it.
  void free_part(uint32_t part);

  // Clients that rounds do not wait for, until they come back.
  std::set<uint32_t> dropped() const;
  void set_dropped(uint32_t client, bool dropped);

  // What an operator has set in place of the recipe's.
  std::optional<RoundPolicy> policy() const;
  void set_policy(const RoundPolicy& policy);

  // Whether an operator has paused the federation.
  bool paused() const;
  void set_paused(bool paused);

  // The newest round in which an update of the part's present client was accepted.
  std::optional<uint32_t> newest_accepted(uint32_t client) const;

  // The digest of the update of a client that was accepted in a round, also after its bytes have gone. Kept
  // for the last rounds, and for ever of each client's newest update.
  std::optional<std::string> accepted(uint32_t round, uint32_t client) const;

  // The round of the checkpoint; -1: none yet.
  int64_t finished_round() const;

  // How far the secure aggregation of a round has come: what each phase has added, in order.
  std::vector<Bytes> sum_phases(uint32_t round) const;
  void add_sum_phase(uint32_t round, const Bytes& state);

  // Copies the state, as of now, to a file that must not exist yet; the owner alone can read it.
  void back_up(const std::filesystem::path& file) { database_.back_up(file); }

  // Puts of `body` become durable together, when this returns.
  void together(const std::function<void()>& body) { database_.transaction(body); }

  std::optional<std::vector<uint32_t>> chosen(uint32_t round) const override;
  void begin_round(uint32_t round, const std::vector<uint32_t>& clients) override;
  std::optional<uint32_t> abandon_round(uint32_t round) override;
  uint32_t attempts(uint32_t round) const override;
  void put(uint32_t round, const ClientResult& result, const std::string& depends_on) override;
  std::optional<ClientResult> find(uint32_t round, uint32_t client,
                                   const std::string& depends_on) const override;
  // The bytes go with the next checkpoint; the digests stay.
  void remove_round(uint32_t round) override;
  void save(uint32_t round, const State& state) override;
  std::optional<State> load() const override;

 private:
  uint32_t lowest_free_number() const;
  void prune();

  mutable Database database_;
  std::string federation_;
  int64_t kept_rounds_;
  int64_t removable_ = -1;
  int64_t finished_ = -1;
};

}  // namespace bitfed
