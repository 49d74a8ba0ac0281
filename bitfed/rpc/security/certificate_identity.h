#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "bitfed/rpc/security/trust.h"
#include "bitfed/secure/protocol/identity.h"

namespace bitfed {

// A client by its certificate and key, as TLS uses them. It knows as peers those whose certificates its own
// authority has signed for clients: neither servers nor operators. What it has checked it remembers until a
// certificate expires. For one thread. Without TLS nobody is known.
using Now = std::function<std::chrono::system_clock::time_point()>;
std::unique_ptr<Identity> make_certificate_identity(const ClientTrust& trust,
                                                    Now now = std::chrono::system_clock::now);

}  // namespace bitfed
