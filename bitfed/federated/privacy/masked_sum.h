#pragma once

#include <optional>
#include <vector>

#include "bitfed/base/modular_vector.h"

namespace bitfed {

// The sum of a round's uploads at a server half that receives them masked.
class MaskedSum {
 public:
  virtual ~MaskedSum() = default;
  virtual std::vector<ModularField> fields() const = 0;
  // Takes off the masks that are left in it: then, and not before, it is the sum of the updates.
  virtual void remove(const ModularVector& masks) = 0;
  virtual void forget() = 0;  // what was accepted in this round
};

// What became of a masked sum.
struct Opening {
  std::optional<ModularVector> masks;  // that are left in it; empty: too few clients are left to open it
  // Where it is not opened: clients may have answered already, and answer only once in a round. The round is
  // lost; otherwise it can be begun again.
  bool asked = false;
};

}  // namespace bitfed
