#include "bitfed/zoo/network/network_description.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/zoo/architectures/architectures.h"

namespace bitfed {
namespace {

std::vector<float> channel_values(const nlohmann::json& object, const char* name, size_t count,
                                  std::string_view source) {
  const nlohmann::json& field = json_field(object, name, source);
  std::vector<float> values;
  for (const nlohmann::json& value : field) {
    if (value.is_number()) values.push_back(value.get<float>());
  }
  const bool finite =
      std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (!field.is_array() || field.size() != count || values.size() != count || !finite)
    throw input_error("{}: field '{}': expected {} finite numbers", source, name, count);
  return values;
}

// Files from before there was a choice do not say it.
bool static_signs_of(const nlohmann::json& described, bool binary, std::string_view source) {
  if (!described.contains("deploy")) return false;
  const std::string deploy = json_string(described, "deploy", source);
  if (deploy != "image" && (deploy != "static" || !binary)) {
    throw input_error("{}: field 'deploy': found '{}', expected image{}", source, deploy,
                      binary ? " or static" : " for a real network");
  }
  return deploy == "static";
}

// Likewise.
Shortcuts shortcuts_of(const nlohmann::json& described, std::string_view source) {
  if (!described.contains("shortcuts")) return Shortcuts::kBlock;
  const std::string shortcuts = json_string(described, "shortcuts", source);
  if (shortcuts != "block" && shortcuts != "convolution") {
    throw input_error("{}: field 'shortcuts': found '{}', expected block or convolution", source, shortcuts);
  }
  return shortcuts == "convolution" ? Shortcuts::kConvolution : Shortcuts::kBlock;
}

std::vector<std::string> layers_of(const nlohmann::json& described, std::string_view source) {
  std::vector<std::string> layers;
  const nlohmann::json& field = json_field(described, "layers", source);
  for (const nlohmann::json& layer : field) {
    if (layer.is_string()) layers.push_back(layer.get<std::string>());
  }
  if (!field.is_array() || layers.size() != field.size())
    throw input_error("{}: field 'layers': expected an array of strings", source);
  return layers;
}

// The description comes from outside; the code that walks it relies on it.
void check_layers(const NetworkSpec& spec, std::string_view source) {
  try {
    architecture_of(spec);
  } catch (const Error& error) {
    throw input_error("{}: field 'layers': {}", source, error.what());
  }
}

}  // namespace

std::string describe_network(const NetworkSpec& spec) {
  nlohmann::json described = {{"name", spec.name},
                              {"binary", spec.binary},
                              {"width", spec.width},
                              {"height", spec.height},
                              {"image_width", spec.image_width},
                              {"channels", spec.channels},
                              {"classes", spec.classes},
                              {"mean", spec.mean},
                              {"deviation", spec.deviation}};
  if (spec.static_signs) described["deploy"] = "static";
  if (!spec.layers.empty()) described["layers"] = spec.layers;
  if (spec.shortcuts == Shortcuts::kConvolution) described["shortcuts"] = "convolution";
  return described.dump();
}

NetworkSpec read_network_description(const State& state, std::string_view source) {
  const nlohmann::json described = parse_json(state.text("bitfed.network"), source);
  const auto length = [&](const char* name, int64_t min, int64_t max) {
    return static_cast<uint32_t>(json_integer(described, name, min, max, source));
  };
  NetworkSpec spec;
  spec.name = json_string(described, "name", source);
  const ArchitectureEntry* entry = find_architecture(spec.name);
  if (entry == nullptr) {
    throw input_error("{}: field 'name': found '{}', expected {}", source, spec.name,
                      joined(architecture_names()));
  }
  const nlohmann::json& binary = json_field(described, "binary", source);
  if (!binary.is_boolean()) throw input_error("{}: field 'binary': expected true or false", source);
  spec.binary = binary.get<bool>();
  spec.static_signs = static_signs_of(described, spec.binary, source);
  spec.width = length("width", 1, 256);
  spec.height = length("height", entry->min_side, 256);
  spec.image_width = length("image_width", entry->min_side, 256);
  spec.channels = length("channels", 1, 64);
  spec.classes = length("classes", 1, UINT16_MAX);
  if (spec.binary && entry->default_width != 0 && spec.width % kLanes != 0)
    throw input_error("{}: field 'width': found {}, expected a multiple of {}", source, spec.width, kLanes);
  spec.mean = channel_values(described, "mean", spec.channels, source);
  spec.deviation = channel_values(described, "deviation", spec.channels, source);
  if (std::any_of(spec.deviation.begin(), spec.deviation.end(), [](float value) { return value <= 0; }))
    throw input_error("{}: field 'deviation': expected numbers above 0", source);
  if (entry->default_width == 0) spec.layers = layers_of(described, source);
  spec.shortcuts = shortcuts_of(described, source);
  check_layers(spec, source);
  return spec;
}

}  // namespace bitfed
