#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "bitfed/base/error.h"

namespace bitfed {

// Checked reads of untrusted JSON: a field that is absent, of the wrong type or out of range is an
// input_error that names the source and the field.
inline const nlohmann::json& json_field(const nlohmann::json& object, const char* name,
                                        std::string_view source) {
  if (!object.is_object() || !object.contains(name))
    throw input_error("{}: field '{}' is missing", source, name);
  return object[name];
}

inline int64_t json_integer(const nlohmann::json& object, const char* name, int64_t min, int64_t max,
                            std::string_view source) {
  const nlohmann::json& field = json_field(object, name, source);
  // An unsigned value beyond int64_t would be converted to a negative one.
  const bool fits =
      field.is_number_integer() && (!field.is_number_unsigned() || field.get<uint64_t>() <= INT64_MAX);
  if (!fits || field.get<int64_t>() < min || field.get<int64_t>() > max) {
    throw input_error("{}: field '{}': expected a whole number from {} to {}", source, name, min, max);
  }
  return field.get<int64_t>();
}

inline std::string json_string(const nlohmann::json& object, const char* name, std::string_view source) {
  const nlohmann::json& field = json_field(object, name, source);
  if (!field.is_string()) throw input_error("{}: field '{}': expected a string", source, name);
  return field.get<std::string>();
}

// Parses a complete JSON document.
inline nlohmann::json parse_json(std::string_view text, std::string_view source) {
  nlohmann::json parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) throw input_error("{}: not valid JSON", source);
  return parsed;
}

}  // namespace bitfed
