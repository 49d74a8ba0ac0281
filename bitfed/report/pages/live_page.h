#pragma once

#include <string>

#include "bitfed/run/status.h"

namespace bitfed {

// A federation at work as one page that reloads itself every few seconds. Everything in it that came from
// clients is escaped.
std::string live_page(const FederationStatus& status);

}  // namespace bitfed
