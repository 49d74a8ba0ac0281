#include "bitfed/zoo/model_file.h"

#include "bitfed/base/error.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "bitfed/zoo/mlp_model.h"
#include "bitfed/zoo/network/network_model.h"
#include "bitfed/zoo/zoo.h"

namespace bitfed {

ModelFile read_model_file(const std::string& path) {
  return model_file_of(read_state(path), path);
}

ModelFile model_file_of(const State& state, const std::string& source) {
  ModelFile file;
  file.model = load_model(state, source);
  file.sha256 = state.sha256();
  if (const auto name = state.metadata.find("bitfed.name"); name != state.metadata.end())
    file.name = name->second;
  if (const auto data = state.metadata.find("bitfed.data"); data != state.metadata.end())
    file.data = data->second;
  if (const auto names = state.metadata.find("bitfed.class_names"); names != state.metadata.end()) {
    for (const nlohmann::json& entry : parse_json(names->second, source)) {
      if (!entry.is_string())
        throw input_error("{}: metadata 'bitfed.class_names': expected strings", source);
      file.class_names.push_back(entry.get<std::string>());
    }
    if (file.class_names.size() != file.model->class_count()) {
      throw input_error("{}: metadata 'bitfed.class_names': found {}, expected one for each of {} classes",
                        source, file.class_names.size(), file.model->class_count());
    }
  } else {
    for (size_t i = 0; i < file.model->class_count(); ++i) file.class_names.push_back(std::to_string(i));
  }
  return file;
}

State model_file_state(const Model& model, const std::string& name,
                       const std::vector<std::string>& class_names, const std::string& data) {
  State state = model.state();
  state.metadata["bitfed.name"] = name;
  state.metadata["bitfed.class_names"] = nlohmann::json(class_names).dump();
  if (!data.empty()) state.metadata["bitfed.data"] = data;
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
