#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace bitfed {

// A federation at work as one page that loads itself again every few seconds; `status` as docs/formats.md has
// it. Everything in it that came from clients is escaped.
std::string live_page(const nlohmann::ordered_json& status);

}  // namespace bitfed
