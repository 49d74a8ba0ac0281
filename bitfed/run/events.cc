#include "bitfed/run/events.h"

#include "bitfed/run/fields.h"

namespace bitfed {
namespace {

// The alternative of Event whose kind it is.
template <size_t kIndex = 0>
std::optional<Event> read_event(const std::string& kind, const nlohmann::json& json,
                                const std::string& where) {
  if constexpr (kIndex < std::variant_size_v<Event>) {
    using Alternative = std::variant_alternative_t<kIndex, Event>;
    if (kind == Alternative::kKind) return read_fields<Alternative>(json, where);
    return read_event<kIndex + 1>(kind, json, where);
  } else {
    return std::nullopt;
  }
}

}  // namespace

const char* kind_of(const Event& event) {
  return std::visit([](const auto& alternative) { return alternative.kKind; }, event);
}

std::string event_line(const Event& event, const std::string& time) {
  nlohmann::ordered_json json = std::visit([](const auto& e) { return write_fields(e); }, event);
  if (!time.empty()) json["time"] = time;
  return json.dump();
}

std::optional<Event> parse_event(std::string_view line, const std::string& where) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const auto kind = json.is_object() ? json.find("event") : json.end();
  if (kind == json.end() || !kind->is_string())
    throw input_error("{}: found {}, expected a JSON object with an \"event\"", where,
                      json.is_discarded() ? "text that is not JSON" : json.type_name());
  return read_event(kind->get<std::string>(), json, where);
}

}  // namespace bitfed
