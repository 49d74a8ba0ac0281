#pragma once

#include <cstdint>
#include <vector>

#include "bitfed/secure/protocol/primitives.h"

namespace bitfed {

// With how many others each member of a round shares. In rounds of up to 64 clients with all. In larger ones
// (Bell et al., "Secure single-server aggregation with (poly)logarithmic overhead", CCS 2020) with so many
// that, if any tenth of the members works with the server, a client with enough of them among its holders to
// open both of its secrets (2 threshold_of(holders) - holders) is met in one round of 2^40; by the
// hypergeometric tail, times the members. Up to 200 members there is none at all. At least 32.
size_t neighbours_in(size_t members);

// Who shares masks and secrets with whom: the nearest on a ring whose order depends on the session. A
// function of session and members, so that every client can check it.
class Neighbours {
 public:
  // `members` ascend.
  Neighbours(const Digest& session, const std::vector<uint32_t>& members);

  // The holders of a member's shares, ascending: its neighbours and itself. The place in the list, from 1 on,
  // is the x of the share.
  std::vector<uint32_t> holders(uint32_t member) const;

 private:
  std::vector<uint32_t> ring_;
};

// How many of its holders can open a member's secrets: more than two thirds. Two openings with disjoint
// answers are impossible then, as long as less than a third of the holders works with the server.
constexpr size_t threshold_of(size_t holders) {
  return 2 * holders / 3 + 1;
}

// A server may tell clients different survivors. If every client sees at least `answering` of its holders
// among them, a sum that can be opened still has this many clients: to take one out, its wrap key must be
// opened, for which threshold_of(holders) clients must have been told that it is lost; and each of the
// members can be told so of at most holders - answering others.
constexpr size_t least_in_sum(size_t members, size_t holders, size_t answering) {
  return members - members * (holders - answering) / threshold_of(holders);
}

}  // namespace bitfed
