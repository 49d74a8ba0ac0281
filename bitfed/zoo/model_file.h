#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/data/samples.h"
#include "bitfed/model/model.h"

namespace bitfed {

struct ModelFile {
  std::unique_ptr<Model> model;
  std::string name;                      // of the run that made it; may be empty
  std::vector<std::string> class_names;  // as many as the model has classes
  std::string data;                      // what its recipe said of the data, TOML; may be empty
  std::vector<std::string> columns;      // of a table, in the order of the model's inputs; may be empty
  std::string trained_on;                // fingerprint of the training samples; may be empty
  std::string sha256;
};

// What a model file notes of its training data besides the recipe's [data].
struct DataNotes {
  std::vector<std::string> columns = {};
  std::string trained_on = {};
};

ModelFile read_model_file(const std::string& path);
ModelFile model_file_of(const State& state, const std::string& source);

// The state to write for that: the model's tensors, and the rest as metadata.
State model_file_state(const Model& model, const std::string& name,
                       const std::vector<std::string>& class_names, const std::string& data,
                       const DataNotes& notes = {});

// What a model takes for a sample.
SampleShape input_of_model(const Model& model);

}  // namespace bitfed
