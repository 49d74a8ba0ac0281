#pragma once

#include <array>

#include "bitfed/secure/protocol/messages.h"
#include "bitfed/secure/protocol/primitives.h"

namespace bitfed {

// What two neighbours have in common in one sum. A function of what their channels agree on, of the session
// and its members (`sum`), and of what either has published for it: another secret of either gives another
// pair.
struct Pair {
  Secret to_higher = {};  // the key of the one message with shares from the lower to the higher number
  Secret to_lower = {};   // the other way
  Secret key = {};        // of their mask
};
Pair pair_of(const Secret& agreed, const Digest& sum, const RoundKeys& one, const RoundKeys& other);

struct PairMask {
  Secret seed = {};
  PairCheck check = {};  // both tell the server, which cannot tell the seed from it
};
PairMask mask_of(const Secret& pair_key);

// The key of a pair hidden by its owner's wrap key, and back: whoever opens the wrap key gets the keys of the
// owner's pairs in this sum, and of no other.
Secret wrap(const Secret& wrap_key, const Secret& pair_key, const RoundKeys& peer);

}  // namespace bitfed
