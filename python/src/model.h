#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bitfed/model/model.h"
#include "bitfed/zoo/model_file.h"
#include "python/src/arrays.h"

namespace bitfed::python {

// A model with what its file says of it.
struct NamedModel {
  std::shared_ptr<const Model> model;
  std::string name;
  std::vector<std::string> class_names;
  std::string data = {};
  DataNotes notes = {};
};

NamedModel named(ModelFile file);

// Scores [sample][class], from the samples where they are.
std::vector<float> scores_of(const Model& model, const SampleView& view, unsigned threads);

}  // namespace bitfed::python
