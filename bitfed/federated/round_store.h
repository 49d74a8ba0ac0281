#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/federated/transport.h"
#include "bitfed/model/state.h"

namespace bitfed {

// Where a federation stores what it needs after a crash: the clients a round was begun with, their uploads,
// and the server's state after a finished round. What a call stores is durable when the call has returned,
// unless the store documents otherwise.
class RoundStore {
 public:
  virtual ~RoundStore() = default;

  // The clients that the round was begun with. Empty where it was not begun, or where the choice is a
  // function of seed and round alone and need not be stored.
  virtual std::optional<std::vector<uint32_t>> chosen(uint32_t /*round*/) const { return std::nullopt; }
  virtual void begin_round(uint32_t /*round*/, const std::vector<uint32_t>& /*clients*/) {}

  // Every client of the round has failed: the choice is forgotten, so that others are chosen. Returns how
  // often that has happened to this round; none where a round cannot be begun again.
  virtual std::optional<uint32_t> abandon_round(uint32_t /*round*/) { return std::nullopt; }
  virtual uint32_t attempts(uint32_t /*round*/) const { return 0; }

  // Whether there may be uploads of the round.
  virtual bool has_round(uint32_t /*round*/) const { return true; }
  virtual void put(uint32_t round, const ClientResult& result, const std::string& depends_on) = 0;
  // The upload; empty where none is stored completely. One that depends on something else is an input_error
  // that shows the first difference.
  virtual std::optional<ClientResult> find(uint32_t round, uint32_t client,
                                           const std::string& depends_on) const = 0;
  virtual void remove_round(uint32_t round) = 0;

  // The checkpoint: the server's state after `round`. Replaces the previous one.
  virtual void save(uint32_t round, const State& state) = 0;
  virtual std::optional<State> load() const = 0;
};

}  // namespace bitfed
