#include "bitfed/zoo/zoo.h"

#include "bitfed/base/error.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "bitfed/zoo/architectures/architectures.h"
#include "bitfed/zoo/mlp_model.h"
#include "bitfed/zoo/network/network_model.h"

namespace bitfed {

const std::vector<ModelEntry>& models() {
  static const std::vector<ModelEntry> kModels = [] {
    std::vector<ModelEntry> all = {
        {"tm", "flat Tsetlin machine: clauses over the whole sample; for tables and small images"},
        {"ctm", "convolutional Tsetlin machine: clauses over patches and their positions"},
        {"ctm-composite",
         "several convolutional machines, each with its own booleanizing and patch, voting together"},
        {"mlp", "multilayer perceptron with batch norm, weights and activations of one bit; for tables"},
    };
    for (const ArchitectureEntry& entry : architectures()) all.push_back({entry.name, entry.description});
    return all;
  }();
  return kModels;
}

std::unique_ptr<Model> load_model(const State& state, std::string_view source) {
  const auto format = state.metadata.find("bitfed.format");
  if (format == state.metadata.end()) {
    throw input_error("{}: metadata 'bitfed.format' is missing: not a model of bitfed", source);
  }
  if (format->second != "1") {
    throw input_error("{}: format version '{}', expected 1: made by a newer bitfed?", source, format->second);
  }
  const std::string& kind = state.text("bitfed.kind");
  if (kind == "tsetlin") return tsetlin_model_from_state(state, source);
  if (kind == "mlp") return mlp_model_from_state(state, source);
  if (kind == "network") return network_model_from_state(state, source);
  throw input_error("{}: metadata 'bitfed.kind': found '{}', expected tsetlin, mlp or network", source, kind);
}

}  // namespace bitfed
