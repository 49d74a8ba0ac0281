#include "bitfed/model/booleanizer_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "bitfed/model/json_fields.h"

namespace bitfed {
namespace {

constexpr size_t kMaximumCuts = 4096;

std::vector<std::vector<float>> read_cuts(const nlohmann::json& field, std::string_view source) {
  const Error wrong =
      input_error("{}: field 'cuts': expected an array of ascending numbers per column", source);
  if (!field.is_array() || field.empty() || field.size() > kMaximumCuts) throw wrong;
  std::vector<std::vector<float>> cuts;
  for (const nlohmann::json& column : field) {
    if (!column.is_array() || column.size() > kMaximumCuts) throw wrong;
    std::vector<float>& values = cuts.emplace_back();
    for (const nlohmann::json& value : column) {
      if (!value.is_number() || !std::isfinite(value.get<float>())) throw wrong;
      if (!values.empty() && value.get<float>() <= values.back()) throw wrong;
      values.push_back(value.get<float>());
    }
  }
  return cuts;
}

}  // namespace

// Fields of other kinds are left out: a model file must not depend on defaults that mean nothing to it.
nlohmann::json booleanizer_to_json(const BooleanizerSpec& spec) {
  nlohmann::json json = {{"kind", spec.kind}};
  if (spec.kind == "threshold") json["level"] = spec.level;
  if (spec.kind == "adaptive-gaussian") {
    json["window"] = spec.window;
    json["offset"] = spec.offset;
  }
  if (spec.kind == "colour-thermometer") json["levels"] = spec.levels;
  if (spec.kind == "quantile") {
    json["bins"] = spec.bins;
    json["cuts"] = spec.cuts;
  }
  return json;
}

BooleanizerSpec booleanizer_from_json(const nlohmann::json& json, std::string_view source) {
  const auto integer = [&](const char* name, int min, int max) {
    return static_cast<int>(json_integer(json, name, min, max, source));
  };
  BooleanizerSpec spec;
  spec.kind = json_string(json, "kind", source);
  if (spec.kind == "threshold") {
    spec.level = integer("level", 0, 255);
  } else if (spec.kind == "adaptive-gaussian") {
    spec.window = integer("window", 3, 255);
    spec.offset = integer("offset", -255, 255);
    if (spec.window % 2 == 0)
      throw input_error("{}: field 'window': found {}, expected an odd number", source, spec.window);
  } else if (spec.kind == "colour-thermometer") {
    spec.levels = integer("levels", 1, 254);
  } else if (spec.kind == "quantile") {
    spec.bins = integer("bins", 2, static_cast<int>(kMaximumCuts));
    spec.cuts = read_cuts(json_field(json, "cuts", source), source);
  } else {
    throw input_error("{}: field 'kind': found '{}', expected a booleanizer", source, spec.kind);
  }
  return spec;
}

}  // namespace bitfed
