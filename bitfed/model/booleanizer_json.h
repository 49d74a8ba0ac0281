#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "bitfed/data/booleanize/booleanizer.h"

namespace bitfed {

// A booleanizer as stored in model files: only the fields of its kind.
nlohmann::json booleanizer_to_json(const BooleanizerSpec& spec);

// The inverse, for untrusted input. `source` is named in errors.
BooleanizerSpec booleanizer_from_json(const nlohmann::json& json, std::string_view source);

}  // namespace bitfed
