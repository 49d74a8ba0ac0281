#include "cli/model_file.h"

#include "bitfed/base/error.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/zoo/zoo.h"

namespace bitfed::cli {

ModelFile read_model_file(const std::string& path) {
  const State state = read_state(path);
  ModelFile file;
  file.model = load_model(state, path);
  file.sha256 = state.sha256();
  if (const auto name = state.metadata.find("bitfed.name"); name != state.metadata.end())
    file.name = name->second;
  if (const auto data = state.metadata.find("bitfed.data"); data != state.metadata.end())
    file.data = data->second;
  if (const auto names = state.metadata.find("bitfed.class_names"); names != state.metadata.end()) {
    for (const nlohmann::json& entry : parse_json(names->second, path)) {
      if (!entry.is_string()) throw input_error("{}: metadata 'bitfed.class_names': expected texts", path);
      file.class_names.push_back(entry.get<std::string>());
    }
    if (file.class_names.size() != file.model->class_count()) {
      throw input_error("{}: metadata 'bitfed.class_names': found {}, expected one for each of {} classes",
                        path, file.class_names.size(), file.model->class_count());
    }
  } else {
    for (size_t i = 0; i < file.model->class_count(); ++i) file.class_names.push_back(std::to_string(i));
  }
  return file;
}

}  // namespace bitfed::cli
