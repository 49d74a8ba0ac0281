#pragma once

#include <string>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// By what clients know each other: over a network the certificates of their authority, so that a server
// cannot put keys of its own in between.
class Identity {
 public:
  virtual ~Identity() = default;
  virtual Bytes certificate() const = 0;
  virtual Bytes sign(const Bytes& text) const = 0;
  // The name of a peer whose certificate and signature are good; otherwise an input_error. Both may be left
  // out (empty) if those of the same text were checked before, and are still good.
  virtual std::string check(const Bytes& certificate, const Bytes& text, const Bytes& signature) const = 0;
};

// For a simulation, whose clients cannot be told apart by anybody but the simulator.
class NoIdentity : public Identity {
 public:
  Bytes certificate() const override { return {}; }
  Bytes sign(const Bytes& /*text*/) const override { return {}; }
  std::string check(const Bytes& /*certificate*/, const Bytes& /*text*/,
                    const Bytes& /*signature*/) const override {
    return "";
  }
};

}  // namespace bitfed
