#include "bitfed/zoo/mlp_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/nn/products/sign_bits.h"

namespace bitfed {
namespace {

constexpr int64_t kMaximumWidth = 65535;

// The names of the dense layers, as their tensors' names begin.
std::vector<std::string> layer_names(const MlpShape& shape) {
  std::vector<std::string> names;
  for (const LayerRecord& record : describe_mlp(shape).layers) {
    if (record.kind == LayerKind::kDense) names.push_back(record.name);
  }
  return names;
}

std::vector<float> finite_numbers(const nlohmann::json& object, const char* name, size_t count,
                                  std::string_view source) {
  const nlohmann::json& field = json_field(object, name, source);
  std::vector<float> numbers;
  for (const nlohmann::json& value : field) {
    if (value.is_number()) numbers.push_back(value.get<float>());
    if (!value.is_number() || !std::isfinite(numbers.back()))
      throw input_error("{}: field '{}': expected finite numbers", source, name);
  }
  if (!field.is_array() || numbers.size() != count)
    throw input_error("{}: field '{}': found {} numbers, expected {}", source, name, numbers.size(), count);
  return numbers;
}

void check_finite(const std::vector<float>& values, const std::string& name, std::string_view source) {
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
    throw input_error("{}: tensor '{}': expected finite numbers", source, name);
}

MlpShape shape_from_state(const State& state, std::string_view source) {
  const nlohmann::json described = parse_json(state.text("bitfed.mlp"), source);
  MlpShape shape;
  const nlohmann::json& binary = json_field(described, "binary", source);
  const nlohmann::json& widths = json_field(described, "widths", source);
  if (!binary.is_boolean()) throw input_error("{}: field 'binary': expected true or false", source);
  shape.binary = binary.get<bool>();
  if (!widths.is_array() || widths.size() < 2 || widths.size() > 64)
    throw input_error("{}: field 'widths': expected 2 to 64 numbers", source);
  for (const nlohmann::json& width : widths) {
    if (!width.is_number_integer() || width.get<int64_t>() < 1 || width.get<int64_t>() > kMaximumWidth)
      throw input_error("{}: field 'widths': expected whole numbers from 1 to {}", source, kMaximumWidth);
    shape.widths.push_back(width.get<uint32_t>());
  }
  return shape;
}

void make_layers(const std::vector<float>& weights, const std::vector<float>& factors,
                 const std::vector<float>& shifts, DeployedMlp* mlp) {
  auto weight = weights.begin();
  size_t unit = 0;
  for (size_t i = 0; i < mlp->shape.layers(); ++i) {
    const size_t in = mlp->shape.widths[i];
    const size_t out = mlp->shape.widths[i + 1];
    DeployedMlp::Layer layer{Matrix(in, out), Floats(out), Floats(out)};
    for (size_t row = 0; row < in; ++row, weight += static_cast<std::ptrdiff_t>(out))
      std::copy_n(weight, out, layer.weights.row(row));
    std::copy_n(factors.data() + unit, out, layer.factor.data());
    std::copy_n(shifts.data() + unit, out, layer.shift.data());
    unit += out;
    mlp->layers.push_back(std::move(layer));
  }
}

DeployedMlp deployed(MlpShape shape, ColumnScaling scaling, const MlpParameters& parameters) {
  std::vector<float> factors;
  std::vector<float> shifts;
  for (size_t unit = 0; unit < shape.units(); ++unit) {
    factors.push_back(1 / std::sqrt(parameters.variances[unit] + kNormEpsilon));
    shifts.push_back(parameters.shifts[unit] - parameters.means[unit] * factors.back());
  }
  std::vector<float> weights = parameters.weights;
  if (shape.binary) {
    for (float& weight : weights) weight = weight >= 0 ? 1.0f : -1.0f;
  }
  DeployedMlp mlp{std::move(shape), std::move(scaling), {}};
  make_layers(weights, factors, shifts, &mlp);
  return mlp;
}

}  // namespace

MlpModel::MlpModel(MlpShape shape, ColumnScaling scaling, const MlpParameters& parameters)
    : MlpModel(deployed(std::move(shape), std::move(scaling), parameters)) {}

void MlpModel::check_fits(const Dataset& dataset) const {
  const size_t inputs = shape().widths.front();
  if (dataset.columns.size() != inputs) {
    throw input_error("{}: {} columns of numbers, expected {} as the model was trained on", dataset.name,
                      dataset.columns.size(), inputs);
  }
}

State MlpModel::state() const {
  State state;
  const std::vector<std::string> names = layer_names(shape());
  for (size_t i = 0; i < mlp_->layers.size(); ++i) {
    const DeployedMlp::Layer& layer = mlp_->layers[i];
    const uint64_t in = layer.weights.rows;
    const uint64_t out = layer.weights.columns;
    std::vector<float> weights;
    for (size_t row = 0; row < in; ++row)
      weights.insert(weights.end(), layer.weights.row(row), layer.weights.row(row) + out);
    if (shape().binary) {
      const std::vector<uint8_t> bits = pack_signs(weights);
      state.add(names[i] + ".weights", {bits.size()}, bits);
    } else {
      state.add(names[i] + ".weights", {in, out}, weights);
    }
    state.add(names[i] + ".factor", {out}, std::span<const float>(layer.factor.data(), out));
    state.add(names[i] + ".shift", {out}, std::span<const float>(layer.shift.data(), out));
  }
  state.metadata["bitfed.format"] = "1";
  state.metadata["bitfed.kind"] = "mlp";
  state.metadata["bitfed.mlp"] =
      nlohmann::json({{"widths", shape().widths}, {"binary", shape().binary}}).dump();
  state.metadata["bitfed.scaling"] =
      nlohmann::json({{"offset", scaling().offset}, {"factor", scaling().factor}, {"limit", scaling().limit}})
          .dump();
  return state;
}

ModelCosts MlpModel::costs() const {
  ModelCosts costs;
  for (const LayerCosts& layer : layer_costs()) {
    costs.bytes += layer.weight_bytes + layer.norm_bytes;
    costs.flops += layer.flops;
    costs.binary_ops += layer.binary_ops;
  }
  return costs;
}

std::unique_ptr<MlpModel> mlp_model_from_state(const State& state, std::string_view source) {
  DeployedMlp mlp;
  mlp.shape = shape_from_state(state, source);
  const MlpShape& shape = mlp.shape;
  const nlohmann::json scaling = parse_json(state.text("bitfed.scaling"), source);
  mlp.scaling.offset = finite_numbers(scaling, "offset", shape.widths.front(), source);
  mlp.scaling.factor = finite_numbers(scaling, "factor", shape.widths.front(), source);
  const nlohmann::json& limit = json_field(scaling, "limit", source);
  if (!limit.is_number() || !(limit.get<float>() >= 0) || !std::isfinite(limit.get<float>()))
    throw input_error("{}: field 'limit': expected a number from 0 on", source);
  mlp.scaling.limit = limit.get<float>();
  std::vector<float> weights;
  std::vector<float> factors;
  std::vector<float> shifts;
  const auto append = [&](std::vector<float>* all, const std::vector<float>& more, const std::string& name) {
    check_finite(more, name, source);
    all->insert(all->end(), more.begin(), more.end());
  };
  const std::vector<std::string> names = layer_names(shape);
  for (size_t i = 0; i < shape.layers(); ++i) {
    const uint64_t in = shape.widths[i];
    const uint64_t out = shape.widths[i + 1];
    const std::string name = names[i] + ".weights";
    if (shape.binary) {
      append(&weights, unpack_signs(state.values<uint8_t>(name, {(in * out + 7) / 8}), in * out, name), name);
    } else {
      append(&weights, state.values<float>(name, {in, out}), name);
    }
    append(&factors, state.values<float>(names[i] + ".factor", {out}), names[i] + ".factor");
    append(&shifts, state.values<float>(names[i] + ".shift", {out}), names[i] + ".shift");
  }
  make_layers(weights, factors, shifts, &mlp);
  return std::unique_ptr<MlpModel>(new MlpModel(std::move(mlp)));
}

}  // namespace bitfed
