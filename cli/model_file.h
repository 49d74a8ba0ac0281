#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bitfed/model/model.h"

namespace bitfed::cli {

struct ModelFile {
  std::unique_ptr<Model> model;
  std::string name;                      // of the run that made it; may be empty
  std::vector<std::string> class_names;  // as many as the model has classes
  std::string data;                      // what its recipe said of the data, TOML; may be empty
  std::string sha256;
};

ModelFile read_model_file(const std::string& path);

}  // namespace bitfed::cli
