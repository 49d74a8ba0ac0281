#include "bitfed/zoo/network/network_model.h"

#include <algorithm>
#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/nn/norm/folded_norm.h"
#include "bitfed/nn/norm/norm_parameters.h"
#include "bitfed/nn/products/sign_bits.h"
#include "bitfed/zoo/network/network_description.h"
#include "bitfed/zoo/network/network_predictor.h"

namespace bitfed {
namespace {

constexpr uint64_t kPaperSpeedup = 58;  // of a binary operation, by which the FedBNN paper divides

NetworkValues values_of(const NetworkSpec& spec, const NetworkParameters& parameters) {
  NetworkValues values;
  const std::vector<NetworkTensor> tensors = network_tensors(architecture_of(spec));
  for (size_t i = 0; i < tensors.size(); ++i) {
    values.signs.push_back(tensors[i].signs ? pack_signs(parameters[i]) : std::vector<uint8_t>());
    values.reals.push_back(tensors[i].signs ? std::vector<float>() : parameters[i]);
  }
  return values;
}

// All operations as real ones; of a binary network those of a real first layer, and a 58th of all others.
uint64_t paper_flops(const std::vector<LayerCosts>& layers, bool binary) {
  uint64_t first = 0;
  uint64_t others = 0;
  for (const LayerCosts& layer : layers) {
    const bool real_first = &layer == &layers.front() && layer.bits_per_weight > 1;
    (real_first ? first : others) += 2 * layer.multiply_adds();
  }
  return first + (binary ? others / kPaperSpeedup : others);
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

// Whether every convolution could be a binary one: channels in multiples of kLanes, a norm behind each.
bool can_be_binary(const Architecture& architecture) {
  bool can = architecture.layers.front().kind == LayerKind::kConvolution;
  bool awaits_norm = false;
  uint32_t channels = 0;  // of the product before; those of the last one are the classes
  for_each_record(architecture.layers, [&](const LayerRecord& record) {
    if (awaits_norm && record.kind != LayerKind::kNorm) can = false;
    awaits_norm = record.kind == LayerKind::kConvolution;
    if (!record.is_product()) return;
    if (channels % kLanes != 0) can = false;
    channels = record.out.channels;
  });
  return can;
}

// Finite statistics may still give factors that are not, where a variance is next to nothing. A norm's shift,
// mean and variance stand behind its scale.
void check_folded(const std::vector<NetworkTensor>& tensors, const NetworkValues& values,
                  std::string_view source) {
  const auto finite = [](float value) { return std::isfinite(value); };
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].name.ends_with(".scale")) continue;
    const FoldedNorm norm =
        fold_norm(values.reals[i], values.reals[i + 1], values.reals[i + 2], values.reals[i + 3]);
    if (!std::all_of(norm.factor.begin(), norm.factor.end(), finite) ||
        !std::all_of(norm.offset.begin(), norm.offset.end(), finite)) {
      throw input_error("{}: tensor '{}': expected a batch norm that can be folded", source, tensors[i].name);
    }
  }
}

}  // namespace

NetworkModel::NetworkModel(const NetworkSpec& spec, const NetworkParameters& parameters)
    : NetworkModel(spec, values_of(spec, parameters)) {}

NetworkModel::NetworkModel(NetworkSpec spec, NetworkValues values)
    : spec_(std::move(spec)), architecture_(architecture_of(spec_)), values_(std::move(values)) {
  if (spec_.binary)
    packed_ = std::make_shared<const PackedNetwork>(make_packed_network(spec_, architecture_, values_));
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
  return make_layers_predictor(spec_, values_.reals);
}

State NetworkModel::state() const {
  State state;
  const std::vector<NetworkTensor> tensors = network_tensors(architecture_);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const NetworkTensor& tensor = tensors[i];
    if (tensor.signs) {
      state.add(tensor.name, {values_.signs[i].size()}, values_.signs[i]);
    } else {
      state.add(tensor.name, {tensor.rows, tensor.columns}, values_.reals[i]);
    }
  }
  state.metadata["bitfed.format"] = "1";
  state.metadata["bitfed.kind"] = "network";
  state.metadata["bitfed.network"] = describe_network(spec_);
  return state;
}

// As the papers count: four bytes per learned parameter, an eighth for a sign; running statistics are not
// counted.
ModelCosts NetworkModel::costs() const {
  ModelCosts costs;
  uint64_t learned = 0;
  for (const NetworkTensor& tensor : network_tensors(architecture_)) {
    if (tensor.statistic) continue;
    learned += tensor.count();
    costs.bytes += tensor.packed_bytes();
  }
  const std::vector<LayerCosts> layers = layer_costs();
  for (const LayerCosts& layer : layers) {
    costs.flops += layer.flops;
    costs.binary_ops += layer.binary_ops;
  }
  costs.paper_bytes = spec_.binary ? (learned + 7) / 8 : sizeof(float) * learned;
  costs.paper_flops = paper_flops(layers, spec_.binary);
  return costs;
}

std::unique_ptr<Model> NetworkModel::binarised() const {
  if (spec_.binary || !can_be_binary(architecture_)) return nullptr;
  NetworkSpec spec = spec_;
  spec.binary = true;
  NetworkParameters parameters = values_.reals;
  const std::vector<NetworkTensor> tensors = network_tensors(architecture_of(spec));
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].signs) binarise_filters(tensors[i], &parameters[i], &parameters[i + 1]);
  }
  return std::make_unique<NetworkModel>(spec, parameters);
}

std::vector<double> NetworkModel::measure_layers() const {
  return packed_ == nullptr ? std::vector<double>() : packed_->measure_layers();
}

std::unique_ptr<NetworkModel> network_model_from_state(const State& state, std::string_view source) {
  NetworkSpec spec = read_network_description(state, source);
  NetworkValues values;
  const std::vector<NetworkTensor> tensors = network_tensors(architecture_of(spec));
  for (const NetworkTensor& tensor : tensors) {
    std::vector<uint8_t>& signs = values.signs.emplace_back();
    std::vector<float>& reals = values.reals.emplace_back();
    if (tensor.signs) {
      signs = state.values<uint8_t>(tensor.name, {tensor.packed_bytes()});
    } else {
      reals = state.values<float>(tensor.name, {tensor.rows, tensor.columns});
      check_values(tensor.name, reals, state.source());
    }
  }
  check_folded(tensors, values, state.source());
  return std::make_unique<NetworkModel>(std::move(spec), std::move(values));
}

}  // namespace bitfed
