#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bitfed/zoo/mlp_model.h"
#include "bitfed/zoo/network/network_model.h"
#include "tests/tsetlin/naive_scores.h"

namespace bitfed {

// A model of random numbers, and samples for it.
struct SomeModel {
  std::string name;
  std::shared_ptr<Model> model;
  Dataset samples;
};

inline RandomStream edge_random(uint64_t number) {
  return RandomStream({.seed = number, .purpose = "edge"});
}

inline BooleanizerSpec booleanizer(const std::string& kind) {
  BooleanizerSpec spec;
  spec.kind = kind;
  spec.levels = 5;
  return spec;
}

inline Dataset random_table(size_t rows, size_t columns, RandomStream random) {
  Dataset table;
  table.name = "table";
  for (size_t c = 0; c < columns; ++c) table.columns.push_back("c" + std::to_string(c));
  for (size_t i = 0; i < rows * columns; ++i) table.values.push_back(static_cast<float>(3 * random.normal()));
  table.labels.assign(rows, 0);
  table.class_names = {"a"};
  return table;
}

inline SomeModel some_tsetlin(const std::string& name, const std::vector<TsetlinMember>& members,
                              size_t classes, size_t channels) {
  RandomStream random = edge_random(3);
  const PatchShape& shape = members[0].shape;
  return {name, std::make_shared<TsetlinModel>(classes, members),
          random_dataset(60, shape.height, shape.width, channels, random)};
}

// Of each kind of Tsetlin machine one; `kinds` of booleanizers at the images' odd sizes.
inline std::vector<SomeModel> some_tsetlin_models() {
  RandomStream random = edge_random(1);
  const auto member = [&](const std::string& kind, const PatchShape& shape, size_t clauses) {
    return random_member(booleanizer(kind), shape, 3, clauses, random);
  };
  std::vector<SomeModel> models;
  models.push_back(some_tsetlin("flat", {member("threshold", {7, 5, 2, 7, 5}, 30)}, 3, 2));
  models.push_back(some_tsetlin("threshold", {member("threshold", {9, 70, 1, 3, 4}, 40)}, 3, 1));
  models.push_back(some_tsetlin("adaptive", {member("adaptive-gaussian", {13, 12, 3, 5, 5}, 40)}, 3, 3));
  TsetlinMember small = member("adaptive-gaussian", {6, 8, 1, 2, 3}, 40);
  small.booleanizer.window = 17;  // larger than the image
  models.push_back(some_tsetlin("wide window", {small}, 3, 1));
  models.push_back(some_tsetlin("thermometer", {member("colour-thermometer", {8, 9, 10, 3, 2}, 60)}, 3, 2));
  std::vector<TsetlinMember> composite = {member("adaptive-gaussian", {10, 11, 2, 4, 4}, 20),
                                          member("colour-thermometer", {10, 11, 10, 2, 2}, 20),
                                          member("adaptive-gaussian", {10, 11, 2, 3, 5}, 20),
                                          member("threshold", {10, 11, 2, 10, 11}, 20)};
  composite[0].clamp = 7;
  composite[0].scale = 7;
  composite[1].scale = 0.3f;
  composite[2].weights[0] = 2000000000;  // sums beyond 32 bits
  composite[2].weights[1] = 2000000000;
  models.push_back(some_tsetlin("composite", composite, 3, 2));

  TsetlinMember table = member("quantile", {1, 1, 9, 1, 1}, 40);
  table.booleanizer.cuts = {{-1, 0, 2}, {}, {0.5f}, {-3, -1, 0, 1, 3}};
  models.push_back(
      {"table", std::make_shared<TsetlinModel>(3, std::vector{table}), random_table(60, 4, edge_random(4))});
  return models;
}

inline std::shared_ptr<MlpModel> some_mlp(const MlpShape& shape, bool clipped) {
  RandomStream random = edge_random(9);
  MlpParameters parameters = initial_parameters(shape, random);
  for (float& shift : parameters.shifts) shift = static_cast<float>(random.normal());
  for (float& mean : parameters.means) mean = static_cast<float>(random.normal());
  for (float& variance : parameters.variances) variance = static_cast<float>(0.1 + 5 * random.uniform());
  ColumnScaling scaling;
  for (size_t c = 0; c < shape.widths.front(); ++c) {
    scaling.offset.push_back(static_cast<float>(random.normal()));
    scaling.factor.push_back(static_cast<float>(0.3 * random.normal()));
  }
  scaling.limit = clipped ? 1.0f : 0.0f;
  // Training gives no negative factors and none of 0, but files can.
  const MlpModel trained(shape, scaling, parameters);
  const State written = trained.state();
  State state("some mlp");
  state.metadata = written.metadata;
  for (Tensor tensor : written.tensors()) {
    if (tensor.name.ends_with("factor")) {
      auto* factors = reinterpret_cast<float*>(tensor.bytes.data());
      for (size_t i = 0; i < tensor.elements(); i += 3) factors[i] = -factors[i];
      if (tensor.elements() > 10) factors[tensor.elements() / 2] = 0;
    }
    state.add(std::move(tensor));
  }
  return mlp_model_from_state(state, "some mlp");
}

inline std::vector<SomeModel> some_mlp_models() {
  std::vector<SomeModel> models;
  for (const bool binary : {true, false}) {
    for (const std::vector<uint32_t>& widths :
         {std::vector<uint32_t>{14, 64, 32, 16, 6}, {5, 33, 3}, {40, 4}}) {
      models.push_back({std::string(binary ? "binary" : "real") + " mlp of " + std::to_string(widths.size()),
                        some_mlp({widths, binary}, widths.size() == 3),
                        random_table(200, widths.front(), edge_random(5))});
    }
  }
  return models;
}

// Batch norm and the dense layer of a network that has seen data, its weights signs where it is binary.
inline std::shared_ptr<NetworkModel> some_network(NetworkSpec spec) {
  RandomStream random = edge_random(7);
  Network network = make_network(spec, 1, random);
  const std::vector<NetworkTensor> tensors = network_tensors(architecture_of(spec));
  for (size_t i = 0; i < tensors.size(); ++i) {
    Parameter* parameter = network.parameters()[i];
    const bool sums_of_signs =
        spec.binary && (parameter->name.starts_with("blocks.") || spec.name == "custom");
    std::vector<float> numbers = parameter->to_vector();
    for (float& number : numbers) {
      if (parameter->name.ends_with(".scale")) number = static_cast<float>(1 + 0.5 * random.normal());
      if (parameter->name.ends_with(".shift")) number = static_cast<float>(0.5 * random.normal());
      if (parameter->name.ends_with(".mean")) number = static_cast<float>(random.normal());
      if (parameter->name.ends_with(".signs.mean")) number = static_cast<float>(0.2 * random.normal());
      if (parameter->name.ends_with(".variance"))
        number = static_cast<float>((sums_of_signs ? 90 : 0.2) * (0.5 + random.uniform()));
      if (tensors[i].signs) number = number >= 0 ? 1.0f : -1.0f;
    }
    parameter->assign(numbers);
  }
  return std::make_shared<NetworkModel>(std::move(spec), parameters_of(network));
}

// `name`: what the network is called, behind other words.
inline SomeModel some_network_model(const std::string& name, bool binary, uint32_t width, uint32_t height,
                                    uint32_t image_width, uint32_t channels, size_t samples,
                                    bool static_signs = false, Shortcuts shortcuts = Shortcuts::kBlock) {
  NetworkSpec spec;
  spec.name = name.substr(name.rfind(' ') + 1);
  spec.shortcuts = shortcuts;
  spec.binary = binary;
  spec.static_signs = static_signs;
  spec.width = width;
  spec.height = height;
  spec.image_width = image_width;
  spec.channels = channels;
  spec.classes = 10;
  spec.mean.assign(channels, 0.45f);
  spec.deviation.assign(channels, 0.25f);
  RandomStream random = edge_random(6);
  return {name, some_network(spec), random_dataset(samples, height, image_width, channels, random)};
}

// A network that a recipe could spell out, on images of 13 x 12 pixels of three channels.
inline SomeModel some_custom_network(const std::string& name, bool binary,
                                     const std::vector<std::string>& layers, bool static_signs = false) {
  NetworkSpec spec;
  spec.name = "custom";
  spec.layers = layers;
  spec.binary = binary;
  spec.static_signs = static_signs;
  spec.height = 13;
  spec.image_width = 12;
  spec.channels = 3;
  spec.classes = 10;
  spec.mean.assign(3, 0.45f);
  spec.deviation.assign(3, 0.25f);
  RandomStream random = edge_random(6);
  return {name, some_network(spec), random_dataset(20, 13, 12, 3, random)};
}

inline std::vector<SomeModel> some_custom_networks() {
  const std::vector<std::string> vgg = {"convolution 16",
                                        "norm",
                                        "activation",
                                        "convolution 32",
                                        "norm",
                                        "activation",
                                        "max-pool 2",
                                        "convolution 32 kernel=5",
                                        "norm",
                                        "activation",
                                        "convolution 16 stride=2",
                                        "norm",
                                        "activation",
                                        "dense classes bias"};
  const std::vector<std::string> mixed = {"convolution 16 real kernel=5 stride=2 bias",
                                          "hardtanh",
                                          "convolution 32 valid",
                                          "norm",
                                          "activation",
                                          "average-pool 2",
                                          "convolution 16 real",
                                          "norm",
                                          "relu",
                                          "block 32 stride=2",
                                          "average-pool",
                                          "norm",
                                          "dense 32 bias",
                                          "relu",
                                          "dense classes"};
  return {some_custom_network("vgg", true, vgg), some_custom_network("static vgg", true, vgg, true),
          some_custom_network("mixed", true, mixed), some_custom_network("static mixed", true, mixed, true),
          some_custom_network(
              "lenet", false,
              {"convolution 6 kernel=5 bias", "relu", "max-pool 2", "convolution 9 valid bias", "relu",
               "average-pool 2", "dropout 0.5", "dense 20 bias", "relu", "dense classes bias"})};
}

inline std::vector<SomeModel> some_network_models() {
  return {some_network_model("binary cnn4", true, 32, 28, 28, 1, 20),
          some_network_model("narrow binary cnn4", true, 16, 19, 33, 3, 20),
          some_network_model("real cnn4", false, 16, 17, 20, 3, 10)};
}

inline std::vector<SomeModel> some_resnet_models() {
  return {some_network_model("binary resnet10", true, 32, 32, 32, 3, 20),
          some_network_model("narrow binary resnet18", true, 16, 9, 14, 1, 20),
          some_network_model("binary resnet10", true, 16, 1, 3, 2, 20),
          some_network_model("static resnet10", true, 32, 11, 16, 3, 20, true),
          some_network_model("each convolution resnet10", true, 32, 13, 16, 3, 20, false,
                             Shortcuts::kConvolution),
          some_network_model("static each convolution resnet18", true, 16, 9, 8, 1, 20, true,
                             Shortcuts::kConvolution),
          some_network_model("real each convolution resnet10", false, 5, 13, 8, 3, 10, false,
                             Shortcuts::kConvolution),
          some_network_model("real resnet10", false, 5, 13, 8, 3, 10),
          some_network_model("real resnet18", false, 16, 16, 16, 1, 10)};
}

inline std::vector<SomeModel> some_static_networks() {
  return {some_network_model("static cnn4", true, 32, 28, 28, 1, 20, true),
          some_network_model("narrow static cnn4", true, 16, 19, 33, 3, 20, true)};
}

inline std::vector<SomeModel> all_some_models() {
  std::vector<SomeModel> all = some_tsetlin_models();
  for (const std::vector<SomeModel>& more : {some_mlp_models(), some_network_models(), some_static_networks(),
                                             some_resnet_models(), some_custom_networks()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace bitfed
