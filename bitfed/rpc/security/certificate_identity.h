#pragma once

#include <memory>

#include "bitfed/rpc/security/trust.h"
#include "bitfed/secure/protocol/identity.h"

namespace bitfed {

// A client by its certificate and key, as TLS uses them. It knows as peers those whose certificates its own
// authority has signed for clients: neither servers nor operators. Without TLS nobody is known.
std::unique_ptr<Identity> make_certificate_identity(const ClientTrust& trust);

}  // namespace bitfed
