#pragma once

// A client's round of a real CNN4 by itself, step by step, for the tests of methods that change a step.

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/zoo/network/network_builder.h"
#include "bitfed/zoo/network/network_parameters.h"
#include "bitfed/zoo/network/network_recipe.h"
#include "tests/federated/dark_and_light.h"

namespace bitfed {

// Two epochs in batches of 8 at a rate of 0.1.
inline std::string plain_recipe(const std::string& method) {
  return "[model]\nname = \"cnn4\"\nwidth = 16\n[method]\nname = \"" + method +
         "\"\n[client]\nepochs = 2\nbatch = 8\nhalve_from = 3\nhalve_every = 2\n";
}

inline NetworkSpec plain_spec() {
  return read_network(Config::parse(plain_recipe("fedavg"), "recipe.toml"), some_images(0), false);
}

inline ParameterShapes plain_shapes() {
  Network network = make_network(plain_spec(), 1, RandomStream({1, "x"}));
  return shapes_of(network);
}

// The parameters of a broadcast or an upload.
inline NetworkParameters read_plain(const State& state) {
  return read_parameters(plain_shapes(), state);
}

// What a client of this seed (see context_of) makes of the parameters. `step` is called when the gradients
// are there.
inline NetworkParameters train_plainly(const NetworkParameters& start, const Dataset& data, uint64_t seed,
                                       const std::function<void(Network*)>& step) {
  const NetworkSpec spec = plain_spec();
  Network network = make_network(spec, 8, RandomStream({1, "any"}));
  assign_parameters(start, &network);
  std::vector<uint32_t> order(data.size());
  std::iota(order.begin(), order.end(), 0u);
  RandomStream random = RandomStream({seed, "client"}).substream(0);
  for (int epoch = 0; epoch < 2; ++epoch) {
    random.shuffle(std::span(order));
    for (size_t first = 0; first < order.size(); first += 8) {
      std::vector<uint16_t> labels;
      for (size_t i = first; i < std::min(first + 8, order.size()); ++i) {
        load_image(spec, data.image(order[i]), i - first, &network);
        labels.push_back(data.labels[order[i]]);
      }
      network.differentiate(labels);
      step(&network);
    }
  }
  return parameters_of(network);
}

// y <- y - 0.1 (gradient + added(parameter, index, y)), in double precision.
inline NetworkParameters train_plainly_with(
    const NetworkParameters& start, const Dataset& data, uint64_t seed,
    const std::function<double(size_t parameter, size_t index, double y)>& added) {
  return train_plainly(start, data, seed, [&](Network* network) {
    for (size_t p = 0; p < start.size(); ++p) {
      Parameter& parameter = *network->parameters()[p];
      if (parameter.statistic) continue;
      std::vector<float> values = parameter.to_vector();
      std::vector<float> gradient;
      parameter.copy_gradient(&gradient);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(values[i] - 0.1 * (gradient[i] + added(p, i, values[i])));
      parameter.assign(values);
    }
  });
}

inline double largest_difference(const NetworkParameters& a, const NetworkParameters& b) {
  double largest = 0;
  for (size_t p = 0; p < a.size(); ++p) {
    for (size_t i = 0; i < a[p].size(); ++i)
      largest = std::max(largest, static_cast<double>(std::abs(a[p][i] - b[p][i])));
  }
  return largest;
}

}  // namespace bitfed
