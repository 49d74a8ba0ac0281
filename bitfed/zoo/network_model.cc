#include "bitfed/zoo/network_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/nn/layers/norm_parameters.h"
#include "bitfed/nn/products/sign_bits.h"
#include "bitfed/zoo/network_predictor.h"

namespace bitfed {
namespace {

constexpr uint64_t kPaperSpeedup = 58;  // of a binary operation, by which the FedBNN paper divides

void check_numbers(const std::string& name, const std::vector<float>& numbers, std::string_view source) {
  const bool variance = name.ends_with(".variance");
  const auto fine = [&](float number) { return std::isfinite(number) && (!variance || number >= 0); };
  if (std::all_of(numbers.begin(), numbers.end(), fine)) return;
  throw input_error("{}: tensor '{}': expected finite numbers{}", source, name, variance ? " from 0 on" : "");
}

NetworkNumbers numbers_of(const NetworkSpec& spec, const NetworkParameters& parameters) {
  NetworkNumbers numbers;
  const std::vector<NetworkTensor> tensors = network_tensors(spec);
  for (size_t i = 0; i < tensors.size(); ++i) {
    numbers.signs.push_back(tensors[i].signs ? pack_signs(parameters[i]) : std::vector<uint8_t>());
    numbers.reals.push_back(tensors[i].signs ? std::vector<float>() : parameters[i]);
  }
  return numbers;
}

// The sum of real operations, or of a binary network that of the real stem and a 58th of all others.
uint64_t paper_flops(const NetworkSpec& spec) {
  uint64_t stem = 0;
  uint64_t others = 0;
  for (const NetworkProduct& product : network_products(spec))
    (product.weights == "stem.weights" ? stem : others) += 2 * product.multiply_adds();
  return stem + (spec.binary ? others / kPaperSpeedup : others);
}

// Makes the weights of a filter (a column) signs, and has the norm behind it (scale, shift, mean, variance)
// give what it would give for these times the mean magnitude of the filter.
void binarise_filters(const NetworkTensor& tensor, std::vector<float>* weights, std::vector<float>* norm) {
  std::vector<float>& means = norm[2];
  std::vector<float>& variances = norm[3];
  const size_t filters = tensor.columns;
  for (size_t f = 0; f < filters; ++f) {
    double sum = 0;
    for (size_t i = f; i < weights->size(); i += filters) {
      sum += std::fabs((*weights)[i]);
      (*weights)[i] = (*weights)[i] >= 0 ? 1.0f : -1.0f;
    }
    const auto magnitude = static_cast<float>(sum / static_cast<double>(tensor.rows));
    if (magnitude == 0) continue;
    const float square = magnitude * magnitude;
    means[f] /= magnitude;
    variances[f] =
        std::max(0.0f, (variances[f] + NormParameters::kEpsilon) / square - NormParameters::kEpsilon);
  }
}

std::vector<float> channel_numbers(const nlohmann::json& object, const char* name, size_t count,
                                   std::string_view source) {
  const nlohmann::json& field = json_field(object, name, source);
  std::vector<float> numbers;
  for (const nlohmann::json& value : field) {
    if (value.is_number()) numbers.push_back(value.get<float>());
  }
  const bool finite =
      std::all_of(numbers.begin(), numbers.end(), [](float number) { return std::isfinite(number); });
  if (!field.is_array() || field.size() != count || numbers.size() != count || !finite)
    throw input_error("{}: field '{}': expected {} finite numbers", source, name, count);
  return numbers;
}

// Files from before there was a choice do not say it.
bool static_signs_of(const nlohmann::json& described, bool binary, std::string_view source) {
  if (!described.contains("deploy")) return false;
  const std::string deploy = json_text(described, "deploy", source);
  if (deploy != "image" && (deploy != "static" || !binary)) {
    throw input_error("{}: field 'deploy': found '{}', expected image{}", source, deploy,
                      binary ? " or static" : " for a real network");
  }
  return deploy == "static";
}

NetworkSpec spec_from_state(const State& state, std::string_view source) {
  const nlohmann::json described = parse_json(state.text("bitfed.network"), source);
  const auto length = [&](const char* name, int64_t least, int64_t most) {
    return static_cast<uint32_t>(json_integer(described, name, least, most, source));
  };
  NetworkSpec spec;
  spec.name = json_text(described, "name", source);
  const std::vector<std::string>& names = network_names();
  if (std::find(names.begin(), names.end(), spec.name) == names.end())
    throw input_error("{}: field 'name': found '{}', expected {}", source, spec.name, fmt::join(names, ", "));
  const nlohmann::json& binary = json_field(described, "binary", source);
  if (!binary.is_boolean()) throw input_error("{}: field 'binary': expected true or false", source);
  spec.binary = binary.get<bool>();
  spec.static_signs = static_signs_of(described, spec.binary, source);
  spec.width = length("width", 1, 256);
  spec.height = length("height", least_side(spec.name), 256);
  spec.image_width = length("image_width", least_side(spec.name), 256);
  spec.channels = length("channels", 1, 64);
  spec.classes = length("classes", 1, UINT16_MAX);
  if (spec.binary && spec.width % kLanes != 0)
    throw input_error("{}: field 'width': found {}, expected a multiple of {}", source, spec.width, kLanes);
  spec.mean = channel_numbers(described, "mean", spec.channels, source);
  spec.deviation = channel_numbers(described, "deviation", spec.channels, source);
  if (std::any_of(spec.deviation.begin(), spec.deviation.end(), [](float value) { return value <= 0; }))
    throw input_error("{}: field 'deviation': expected numbers above 0", source);
  return spec;
}

// Numbers that are finite may still give others that are not, where a variance is next to nothing. Of a norm,
// shift, mean and variance stand behind the scale.
void check_folded(const std::vector<NetworkTensor>& tensors, const NetworkNumbers& numbers,
                  std::string_view source) {
  const auto finite = [](float number) { return std::isfinite(number); };
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].name.ends_with(".scale")) continue;
    const FoldedNorm norm =
        fold_norm(numbers.reals[i], numbers.reals[i + 1], numbers.reals[i + 2], numbers.reals[i + 3]);
    if (!std::all_of(norm.factor.begin(), norm.factor.end(), finite) ||
        !std::all_of(norm.offset.begin(), norm.offset.end(), finite)) {
      throw input_error("{}: tensor '{}': expected a batch norm that can be folded", source, tensors[i].name);
    }
  }
}

}  // namespace

NetworkParameters parameters_of(Network& network) {
  NetworkParameters parameters;
  for (const Parameter* parameter : network.parameters()) parameters.push_back(parameter->numbers());
  return parameters;
}

void assign_parameters(const NetworkParameters& parameters, Network* network) {
  const std::vector<Parameter*> own = network->parameters();
  for (size_t i = 0; i < own.size(); ++i) own[i]->assign(parameters[i]);
}

void add_parameters(const ParameterShapes& shapes, const NetworkParameters& parameters, State* state) {
  for (size_t i = 0; i < shapes.size(); ++i) {
    state->add(shapes[i]->name, {shapes[i]->used_rows(), shapes[i]->values.columns}, parameters[i]);
  }
}

NetworkParameters read_parameters(const ParameterShapes& shapes, const State& state) {
  NetworkParameters parameters;
  for (const Parameter* shape : shapes) {
    parameters.push_back(state.values<float>(shape->name, {shape->used_rows(), shape->values.columns}));
    check_numbers(shape->name, parameters.back(), state.source());
  }
  return parameters;
}

NetworkModel::NetworkModel(const NetworkSpec& spec, const NetworkParameters& parameters)
    : NetworkModel(spec, numbers_of(spec, parameters)) {}

NetworkModel::NetworkModel(NetworkSpec spec, NetworkNumbers numbers)
    : spec_(std::move(spec)), numbers_(std::move(numbers)) {
  if (spec_.binary) packed_ = std::make_shared<const PackedNetwork>(packed_numbers(spec_, numbers_));
}

void NetworkModel::check_fits(const Dataset& dataset) const {
  if (dataset.height != spec_.height || dataset.width != spec_.image_width ||
      dataset.channels != spec_.channels) {
    throw input_error("{}: images of {} x {} x {}, expected {} x {} x {} as the model was trained on",
                      dataset.name, dataset.height, dataset.width, dataset.channels, spec_.height,
                      spec_.image_width, spec_.channels);
  }
}

std::unique_ptr<Predictor> NetworkModel::predictor() const {
  if (packed_ != nullptr) return make_packed_predictor(spec_, packed_);
  return make_layers_predictor(spec_, numbers_.reals);
}

State NetworkModel::state() const {
  State state;
  const std::vector<NetworkTensor> tensors = network_tensors(spec_);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const NetworkTensor& tensor = tensors[i];
    if (tensor.signs) {
      state.add(tensor.name, {numbers_.signs[i].size()}, numbers_.signs[i]);
    } else {
      state.add(tensor.name, {tensor.rows, tensor.columns}, numbers_.reals[i]);
    }
  }
  state.metadata["bitfed.format"] = "1";
  state.metadata["bitfed.kind"] = "network";
  nlohmann::json described = {{"name", spec_.name},
                              {"binary", spec_.binary},
                              {"width", spec_.width},
                              {"height", spec_.height},
                              {"image_width", spec_.image_width},
                              {"channels", spec_.channels},
                              {"classes", spec_.classes},
                              {"mean", spec_.mean},
                              {"deviation", spec_.deviation}};
  if (spec_.static_signs) described["deploy"] = "static";
  state.metadata["bitfed.network"] = described.dump();
  return state;
}

// As the papers count: four bytes for each number that training changes, an eighth for a sign; running
// statistics are not counted.
ModelCosts NetworkModel::costs() const {
  ModelCosts costs;
  uint64_t learned = 0;
  for (const NetworkTensor& tensor : network_tensors(spec_)) {
    if (tensor.statistic) continue;
    learned += tensor.count();
    costs.bytes += tensor.packed_bytes();
  }
  const NetworkOperations operations = network_operations(spec_);
  costs.flops = operations.real;
  costs.binary_ops = operations.binary;
  costs.paper_bytes = spec_.binary ? (learned + 7) / 8 : sizeof(float) * learned;
  costs.paper_flops = paper_flops(spec_);
  return costs;
}

std::unique_ptr<Model> NetworkModel::binarised() const {
  if (spec_.binary || spec_.width % kLanes != 0) return nullptr;
  NetworkSpec spec = spec_;
  spec.binary = true;
  NetworkParameters parameters = numbers_.reals;
  const std::vector<NetworkTensor> tensors = network_tensors(spec);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].signs) binarise_filters(tensors[i], &parameters[i], &parameters[i + 1]);
  }
  return std::make_unique<NetworkModel>(spec, parameters);
}

std::vector<NetworkLayerCosts> NetworkModel::layer_costs() const {
  std::vector<NetworkLayerCosts> all;
  for (const NetworkProduct& product : network_products(spec_)) {
    NetworkLayerCosts layer;
    layer.name = product.weights.substr(0, product.weights.rfind('.'));
    if (layer.name.ends_with(".convolution")) layer.name.resize(layer.name.rfind('.'));
    layer.inputs = product.inputs;
    layer.outputs = product.outputs;
    layer.places = product.places;
    layer.bits_per_weight = product.sign_weights ? 1 : 8 * sizeof(float);
    layer.weight_bytes = (product.inputs * product.outputs * layer.bits_per_weight + 7) / 8;
    if (layer.name != "dense") layer.norm_bytes = 2 * sizeof(float) * product.outputs;
    const NetworkOperations operations = operations_of(product);
    layer.flops = operations.real;
    layer.binary_ops = operations.binary;
    all.push_back(std::move(layer));
  }
  return all;
}

std::vector<double> NetworkModel::measure_layers() const {
  return packed_ == nullptr ? std::vector<double>() : packed_->measure_layers();
}

std::unique_ptr<NetworkModel> network_model_from_state(const State& state, std::string_view source) {
  NetworkSpec spec = spec_from_state(state, source);
  NetworkNumbers numbers;
  const std::vector<NetworkTensor> tensors = network_tensors(spec);
  for (const NetworkTensor& tensor : tensors) {
    std::vector<uint8_t>& signs = numbers.signs.emplace_back();
    std::vector<float>& reals = numbers.reals.emplace_back();
    if (tensor.signs) {
      signs = state.values<uint8_t>(tensor.name, {tensor.packed_bytes()});
    } else {
      reals = state.values<float>(tensor.name, {tensor.rows, tensor.columns});
      check_numbers(tensor.name, reals, state.source());
    }
  }
  check_folded(tensors, numbers, state.source());
  return std::make_unique<NetworkModel>(std::move(spec), std::move(numbers));
}

}  // namespace bitfed
