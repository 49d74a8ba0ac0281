#include "bitfed/zoo/network_model.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/nn/sign_bits.h"

namespace bitfed {
namespace {

constexpr size_t kBatch = 64;
constexpr size_t kGrain = 512;

// Names and shapes of the parameters: those of a network for a single image.
Network prototype_of(const NetworkSpec& spec) {
  return make_network(spec, 1, RandomStream({.purpose = "prototype"}));
}

void check_numbers(const Parameter& shape, const std::vector<float>& numbers, std::string_view source) {
  const bool variance = shape.name.ends_with(".variance");
  const auto fine = [&](float number) { return std::isfinite(number) && (!variance || number >= 0); };
  if (std::all_of(numbers.begin(), numbers.end(), fine)) return;
  throw input_error("{}: tensor '{}': expected finite numbers{}", source, shape.name,
                    variance ? " from 0 on" : "");
}

bool is_signs(const NetworkSpec& spec, const Parameter& shape) {
  return spec.binary && shape.name.ends_with(".convolution.weights");
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

NetworkSpec spec_from_state(const State& state, std::string_view source) {
  const nlohmann::json described = parse_json(state.text("bitfed.network"), source);
  const auto length = [&](const char* name, int64_t least, int64_t most) {
    return static_cast<uint32_t>(json_integer(described, name, least, most, source));
  };
  NetworkSpec spec;
  spec.name = json_text(described, "name", source);
  if (!is_network(spec.name))
    throw input_error("{}: field 'name': found '{}', expected cnn4", source, spec.name);
  const nlohmann::json& binary = json_field(described, "binary", source);
  if (!binary.is_boolean()) throw input_error("{}: field 'binary': expected true or false", source);
  spec.binary = binary.get<bool>();
  spec.width = length("width", kLanes, 256);
  spec.height = length("height", 16, 256);
  spec.image_width = length("image_width", 16, 256);
  spec.channels = length("channels", 1, 64);
  spec.classes = length("classes", 1, UINT16_MAX);
  if (spec.width % kLanes != 0)
    throw input_error("{}: field 'width': found {}, expected a multiple of {}", source, spec.width, kLanes);
  spec.mean = channel_numbers(described, "mean", spec.channels, source);
  spec.deviation = channel_numbers(described, "deviation", spec.channels, source);
  if (std::any_of(spec.deviation.begin(), spec.deviation.end(), [](float value) { return value <= 0; }))
    throw input_error("{}: field 'deviation': expected numbers above 0", source);
  return spec;
}

// A binary cnn4 on bits. Of each block the parameters are weights, scale, shift, mean, variance; then the
// dense layer's weights.
PackedNetwork::Numbers packed_numbers(const NetworkSpec& spec, const NetworkParameters& parameters) {
  PackedNetwork::Numbers numbers;
  numbers.height = spec.height;
  numbers.width = spec.image_width;
  numbers.channels = spec.channels;
  numbers.classes = spec.classes;
  for (size_t c = 0; c < spec.channels; ++c) {
    for (int pixel = 0; pixel < 256; ++pixel)
      numbers.inputs.push_back(input_of(spec, static_cast<uint8_t>(pixel), c));
  }
  for (size_t i = 0; i + 1 < parameters.size(); i += 5) {
    numbers.blocks.push_back({parameters[i], fold_norm(parameters[i + 1], parameters[i + 2],
                                                       parameters[i + 3], parameters[i + 4])});
  }
  numbers.dense = parameters.back();
  return numbers;
}

// Numbers that are finite may still give others that are not, where a variance is next to nothing.
void check_folded(const NetworkSpec& spec, const NetworkParameters& parameters, std::string_view source) {
  const auto finite = [](float number) { return std::isfinite(number); };
  for (const PackedNetwork::Block& block : packed_numbers(spec, parameters).blocks) {
    const FoldedNorm& norm = block.norm;
    if (!std::all_of(norm.factor.begin(), norm.factor.end(), finite) ||
        !std::all_of(norm.offset.begin(), norm.offset.end(), finite))
      throw input_error("{}: batch norms: expected numbers that can be folded", source);
  }
}

// What a small file claims must not make a large network: its weights are there before one is made.
void expect_large_tensors(const NetworkSpec& spec, const State& state) {
  uint64_t channels = spec.channels;
  for (size_t block = 0; block < 4; ++block) {
    const uint64_t out = uint64_t{spec.width} << block;
    const std::string name = fmt::format("blocks.{}.convolution.weights", block);
    if (spec.binary) {
      state.expect(name, Dtype::kU8, {(9 * channels * out + 7) / 8});
    } else {
      state.expect(name, Dtype::kF32, {9 * channels, out});
    }
    channels = out;
  }
  const uint64_t inputs = uint64_t{spec.height >> 4} * (spec.image_width >> 4) * channels;
  state.expect("dense.weights", Dtype::kF32, {inputs, spec.classes});
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
    state->add(shapes[i]->name, {shapes[i]->values.rows, shapes[i]->values.columns}, parameters[i]);
  }
}

NetworkParameters read_parameters(const ParameterShapes& shapes, const State& state) {
  NetworkParameters parameters;
  for (const Parameter* shape : shapes) {
    parameters.push_back(state.values<float>(shape->name, {shape->values.rows, shape->values.columns}));
    check_numbers(*shape, parameters.back(), state.source());
  }
  return parameters;
}

NetworkModel::NetworkModel(NetworkSpec spec, NetworkParameters parameters)
    : spec_(std::move(spec)), parameters_(std::move(parameters)) {
  if (spec_.binary && spec_.name == "cnn4")
    packed_ = std::make_shared<const PackedNetwork>(packed_numbers(spec_, parameters_));
}

std::vector<float> NetworkModel::scores(const Dataset& dataset, ThreadPool& pool) const {
  if (dataset.height != spec_.height || dataset.width != spec_.image_width ||
      dataset.channels != spec_.channels) {
    throw input_error("{}: images of {} x {} x {}, expected {} x {} x {} as the model was trained on",
                      dataset.name, dataset.height, dataset.width, dataset.channels, spec_.height,
                      spec_.image_width, spec_.channels);
  }
  const size_t classes = class_count();
  std::vector<float> scores(dataset.size() * classes);
  pool.for_ranges(dataset.size(), kGrain, [&](size_t begin, size_t end) {
    if (packed_ != nullptr) {
      PackedNetwork::Workspace workspace = packed_->make_workspace();
      for (size_t i = begin; i < end; ++i)
        packed_->predict(dataset.image(i).data(), &workspace, &scores[i * classes]);
      return;
    }
    Network network = make_network(spec_, kBatch, RandomStream({.purpose = "prediction"}));
    assign_parameters(parameters_, &network);
    for (size_t first = begin; first < end; first += kBatch) {
      const size_t images = std::min(kBatch, end - first);
      for (size_t i = 0; i < images; ++i) load_image(spec_, dataset.image(first + i), i, &network);
      network.predict(images);
      for (size_t i = 0; i < images; ++i)
        std::copy_n(network.logits(i), classes, &scores[(first + i) * classes]);
    }
  });
  return scores;
}

State NetworkModel::state() const {
  State state;
  Network network = prototype_of(spec_);
  const ParameterShapes shapes = network.parameters();
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (is_signs(spec_, *shapes[i])) {
      const std::vector<uint8_t> bits = pack_signs(parameters_[i]);
      state.add(shapes[i]->name, {bits.size()}, bits);
    } else {
      state.add(shapes[i]->name, {shapes[i]->values.rows, shapes[i]->values.columns}, parameters_[i]);
    }
  }
  state.metadata["bitfed.format"] = "1";
  state.metadata["bitfed.kind"] = "network";
  state.metadata["bitfed.network"] = nlohmann::json({{"name", spec_.name},
                                                     {"binary", spec_.binary},
                                                     {"width", spec_.width},
                                                     {"height", spec_.height},
                                                     {"image_width", spec_.image_width},
                                                     {"channels", spec_.channels},
                                                     {"classes", spec_.classes},
                                                     {"mean", spec_.mean},
                                                     {"deviation", spec_.deviation}})
                                         .dump();
  return state;
}

// As the papers count: four bytes for each number that training changes, an eighth for a sign; running
// statistics are not counted.
ModelCosts NetworkModel::costs() const {
  Network network = prototype_of(spec_);
  ModelCosts costs;
  for (const Parameter* parameter : network.parameters()) {
    if (parameter->statistic) continue;
    costs.bytes +=
        is_signs(spec_, *parameter) ? (parameter->count() + 7) / 8 : sizeof(float) * parameter->count();
  }
  const NetworkOperations operations = network_operations(spec_);
  costs.flops = operations.real;
  costs.binary_ops = operations.binary;
  return costs;
}

std::vector<NetworkLayerCosts> NetworkModel::layer_costs() const {
  std::vector<NetworkLayerCosts> all;
  uint64_t height = spec_.height;
  uint64_t width = spec_.image_width;
  uint64_t channels = spec_.channels;
  for (size_t block = 0; block < parameters_.size() / 5; ++block) {
    NetworkLayerCosts layer{.name = fmt::format("blocks.{}", block)};
    layer.inputs = 9 * channels;
    layer.outputs = uint64_t{spec_.width} << block;
    layer.places = height * width;
    layer.bits_per_weight = spec_.binary ? 1 : 8 * sizeof(float);
    layer.weight_bytes = (layer.inputs * layer.outputs * layer.bits_per_weight + 7) / 8;
    layer.norm_bytes = 2 * sizeof(float) * layer.outputs;
    const uint64_t multiply_adds = layer.inputs * layer.outputs * layer.places;
    if (spec_.binary && block > 0) layer.binary_ops = multiply_adds;
    if (spec_.binary && block == 0) layer.flops = multiply_adds;
    if (!spec_.binary) layer.flops = 2 * multiply_adds;
    all.push_back(std::move(layer));
    height /= 2;
    width /= 2;
    channels = uint64_t{spec_.width} << block;
  }
  NetworkLayerCosts dense{.name = "dense", .inputs = height * width * channels, .outputs = spec_.classes};
  dense.bits_per_weight = 8 * sizeof(float);
  dense.weight_bytes = sizeof(float) * dense.inputs * dense.outputs;
  dense.flops = 2 * dense.inputs * dense.outputs;
  all.push_back(std::move(dense));
  return all;
}

std::vector<double> NetworkModel::measure_layers() const {
  return packed_ == nullptr ? std::vector<double>() : packed_->measure_stages();
}

std::unique_ptr<NetworkModel> network_model_from_state(const State& state, std::string_view source) {
  NetworkSpec spec = spec_from_state(state, source);
  expect_large_tensors(spec, state);
  Network network = prototype_of(spec);
  NetworkParameters parameters;
  for (const Parameter* shape : network.parameters()) {
    if (is_signs(spec, *shape)) {
      const auto bits = state.values<uint8_t>(shape->name, {(shape->count() + 7) / 8});
      parameters.push_back(unpack_signs(bits, shape->count(), shape->name));
    } else {
      parameters.push_back(state.values<float>(shape->name, {shape->values.rows, shape->values.columns}));
      check_numbers(*shape, parameters.back(), state.source());
    }
  }
  check_folded(spec, parameters, state.source());
  return std::make_unique<NetworkModel>(std::move(spec), std::move(parameters));
}

}  // namespace bitfed
