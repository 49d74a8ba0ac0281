#include "bitfed/zoo/model_file.h"

#include "bitfed/base/error.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "bitfed/zoo/mlp_model.h"
#include "bitfed/zoo/network/network_model.h"
#include "bitfed/zoo/zoo.h"

namespace bitfed {
namespace {

// A metadata value, or "" where it is missing.
std::string note_of(const State& state, const char* key) {
  const auto found = state.metadata.find(key);
  return found == state.metadata.end() ? "" : found->second;
}

// An array of strings, as many as `expected`; none where it is missing.
std::vector<std::string> names_of(const State& state, const char* key, size_t expected, const char* of_what,
                                  const std::string& source) {
  std::vector<std::string> names;
  const auto found = state.metadata.find(key);
  if (found == state.metadata.end()) return names;
  for (const nlohmann::json& entry : parse_json(found->second, source)) {
    if (!entry.is_string()) throw input_error("{}: metadata '{}': expected strings", source, key);
    names.push_back(entry.get<std::string>());
  }
  if (names.size() != expected) {
    throw input_error("{}: metadata '{}': found {}, expected one for each of {} {}", source, key,
                      names.size(), expected, of_what);
  }
  return names;
}

}  // namespace

ModelFile read_model_file(const std::string& path) {
  return model_file_of(read_state(path), path);
}

ModelFile model_file_of(const State& state, const std::string& source) {
  ModelFile file;
  file.model = load_model(state, source);
  file.sha256 = state.sha256();
  file.name = note_of(state, "bitfed.name");
  file.data = note_of(state, "bitfed.data");
  file.trained_on = note_of(state, "bitfed.trained_on");
  const size_t classes = file.model->class_count();
  file.class_names = names_of(state, "bitfed.class_names", classes, "classes", source);
  const size_t columns = input_of_model(*file.model).columns;
  file.columns = names_of(state, "bitfed.columns", columns, "columns", source);
  if (file.class_names.empty()) {
    for (size_t i = 0; i < classes; ++i) file.class_names.push_back(std::to_string(i));
  }
  return file;
}

State model_file_state(const Model& model, const std::string& name,
                       const std::vector<std::string>& class_names, const std::string& data,
                       const DataNotes& notes) {
  State state = model.state();
  state.metadata["bitfed.name"] = name;
  state.metadata["bitfed.class_names"] = nlohmann::json(class_names).dump();
  if (!data.empty()) state.metadata["bitfed.data"] = data;
  if (!notes.columns.empty()) state.metadata["bitfed.columns"] = nlohmann::json(notes.columns).dump();
  if (!notes.trained_on.empty()) state.metadata["bitfed.trained_on"] = notes.trained_on;
  return state;
}

SampleShape input_of_model(const Model& model) {
  if (const auto* mlp = dynamic_cast<const MlpModel*>(&model))
    return {.columns = mlp->shape().widths.front()};
  if (const auto* network = dynamic_cast<const NetworkModel*>(&model)) {
    const NetworkSpec& spec = network->spec();
    return {.height = spec.height, .width = spec.image_width, .channels = spec.channels};
  }
  return member_input(dynamic_cast<const TsetlinModel&>(model).members().front());
}

}  // namespace bitfed
