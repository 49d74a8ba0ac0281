#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "bitfed/federated/privacy/differential_privacy.h"
#include "bitfed/federated/privacy/random_bits.h"
#include "bitfed/federated/privacy/update_grid.h"

namespace bitfed {

// The sum over clients' updates on a grid, with differential privacy: what one client can change is bounded,
// and noise of a multiple of the bound is added: by the server, or a share of it by each client. Votes,
// changes of learned parameters and statistics have bounds of their own, since their scales differ; where an
// update has several of these, each gets its share of the privacy: noise of sqrt(kinds) times the recipe's
// multiplier.
class PrivateSum {
 public:
  // `parts`: of the method's updates. An input_error where the noise is too fine or too coarse for the grid.
  PrivateSum(const DifferentialPrivacy& privacy, const UpdateGrid& grid, const SumParts& parts);

  // The grid with room for the noise that clients add; the same where the server adds it.
  static UpdateGrid with_room(UpdateGrid grid, const DifferentialPrivacy& privacy);

  // The parts as they are summed. What is clipped has a range: statistics are on the recipe's grid, too.
  static SumParts on_grid(SumParts parts);

  // At the client: shortens what is beyond its bound, and rounds towards 0 so that it stays within.
  void clip(ClientUpdate* update) const;

  // At a server that sees single updates: an input_error for one beyond a bound.
  void check(const ModularVector& update, std::string_view source) const;

  // The noise of one release, or one client's share of it, in units of the grid, in the order of values.
  std::vector<int64_t> noise(const RandomWords& words) const;

  // At a client that adds its share.
  void add_noise(const RandomWords& words, ModularVector* update) const;

  // The mean of `clients` from a sum and the server's noise, which is empty where clients have added theirs.
  // The server's must hide how many came: it divides by the expected number.
  UpdateMean mean(const ModularVector& sum, const std::vector<int64_t>& noise, uint32_t clients) const;

 private:
  struct Group {
    SumKind kind = SumKind::kChange;
    double bound = 0;    // of the norm, in units of the grid
    uint64_t sigma = 0;  // of the noise, likewise
  };
  const Group& group_of(SumKind kind) const;

  UpdateGrid grid_;
  SumParts parts_;
  std::vector<Group> groups_;
};

}  // namespace bitfed
