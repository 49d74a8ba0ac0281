#pragma once

#include <string>

#include "bitfed/rpc/security/trust.h"

namespace bitfed {

// Asks the server at HOST:PORT with an operator's certificate; an input_error where it refuses, a failure
// where it does not answer.
std::string ask_remote_admin(const std::string& server, const ClientTrust& trust, const std::string& line);

}  // namespace bitfed
