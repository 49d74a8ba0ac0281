#pragma once

#include <filesystem>
#include <string>

#include "bitfed/rpc/security/trust.h"

namespace bitfed {

// The device's part of a renewal. The request (PEM) is its certificate and a signing request by the same key.
std::string renewal_request(const std::filesystem::path& certificate, const std::filesystem::path& key);

// Replaces the device's certificate by the answer: a certificate of the same name for the same key, that
// expires later. Anything else is an input_error and changes nothing.
void install_renewed(const ClientTrust& trust, const std::string& pem);

}  // namespace bitfed
