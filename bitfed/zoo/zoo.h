#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/model/model.h"

namespace bitfed {

struct ModelEntry {
  std::string name;         // as a recipe's [model] name
  std::string description;  // one line
};

// The one list of models, in the order they are shown.
const std::vector<ModelEntry>& models();

// Any model of the zoo from its state, by the kind that its metadata names.
std::unique_ptr<Model> load_model(const State& state, std::string_view source);

}  // namespace bitfed
