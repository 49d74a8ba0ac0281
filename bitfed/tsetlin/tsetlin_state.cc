// A TsetlinModel as a State; docs/reference/model-file.md specifies it.

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/model/booleanizer_json.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/tsetlin/packed_actions.h"
#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {
namespace {

std::string prefix(size_t member) {
  return fmt::format("members.{}.", member);
}

PatchShape shape_from_json(const nlohmann::json& json, std::string_view source) {
  const auto length = [&](const char* name, int64_t max) {
    return static_cast<size_t>(json_integer(json, name, 1, max, source));
  };
  PatchShape shape;
  shape.height = length("height", 4096);
  shape.width = length("width", 4096);
  shape.planes = length("planes", UINT16_MAX);
  shape.patch_height = length("patch_height", static_cast<int64_t>(shape.height));
  shape.patch_width = length("patch_width", static_cast<int64_t>(shape.width));
  if (shape.literals() > UINT16_MAX) {
    throw input_error("{}: a patch of {} literals, expected at most {}", source, shape.literals(),
                      UINT16_MAX);
  }
  return shape;
}

TsetlinMember member_from_state(const State& state, const nlohmann::json& json, size_t index, size_t classes,
                                std::string_view source) {
  TsetlinMember member;
  member.booleanizer = booleanizer_from_json(json_field(json, "booleanizer", source), source);
  member.shape = shape_from_json(json, source);
  member.clauses = static_cast<size_t>(json_integer(json, "clauses", 0, 1 << 20, source));
  const std::string name = prefix(index);
  member.weights = state.values<int32_t>(name + "weights", {classes, member.clauses});
  member.actions =
      unpack_actions(state, name + "actions", {classes, member.clauses}, member.shape.literals());
  member.bias = state.values<int32_t>(name + "bias", {classes});
  member.clamp = state.scalar<int32_t>(name + "clamp");
  member.scale = state.scalar<float>(name + "scale");
  if (member.clamp < 0)
    throw input_error("{}: {}clamp: found {}, expected 0 or more", source, name, member.clamp);
  if (!std::isfinite(member.scale) || member.scale < 0) {
    throw input_error("{}: {}scale: found {}, expected 0 or more", source, name, member.scale);
  }
  return member;
}

}  // namespace

State TsetlinModel::state() const {
  State state;
  nlohmann::json described = nlohmann::json::array();
  for (size_t i = 0; i < members_.size(); ++i) {
    const TsetlinMember& member = members_[i];
    described.push_back({{"booleanizer", booleanizer_to_json(member.booleanizer)},
                         {"height", member.shape.height},
                         {"width", member.shape.width},
                         {"planes", member.shape.planes},
                         {"patch_height", member.shape.patch_height},
                         {"patch_width", member.shape.patch_width},
                         {"clauses", member.clauses}});
    const std::string name = prefix(i);
    pack_actions(member.actions, name + "actions", {class_count_, member.clauses}, &state);
    state.add(name + "weights", {class_count_, member.clauses}, member.weights);
    state.add(name + "bias", {class_count_}, member.bias);
    state.add_scalar(name + "clamp", member.clamp);
    state.add_scalar(name + "scale", member.scale);
  }
  state.metadata["bitfed.format"] = "1";
  state.metadata["bitfed.kind"] = "tsetlin";
  state.metadata["bitfed.classes"] = std::to_string(class_count_);
  state.metadata["bitfed.members"] = described.dump();
  return state;
}

std::unique_ptr<TsetlinModel> tsetlin_model_from_state(const State& state, std::string_view source) {
  const nlohmann::json count = parse_json(state.text("bitfed.classes"), source);
  if (!count.is_number_integer() || count.get<int64_t>() < 1 || count.get<int64_t>() > UINT16_MAX) {
    throw input_error("{}: metadata 'bitfed.classes': expected a whole number from 1 to {}", source,
                      UINT16_MAX);
  }
  const auto classes = count.get<size_t>();
  const nlohmann::json described = parse_json(state.text("bitfed.members"), source);
  if (!described.is_array() || described.empty()) {
    throw input_error("{}: metadata 'bitfed.members': expected an array of machines", source);
  }
  std::vector<TsetlinMember> members;
  for (size_t i = 0; i < described.size(); ++i) {
    members.push_back(member_from_state(state, described[i], i, classes, source));
  }
  return std::make_unique<TsetlinModel>(classes, std::move(members));
}

}  // namespace bitfed
