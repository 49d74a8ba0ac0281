// FedMUD (Li et al., "The panaceas for improving low-rank decomposition in communication-efficient federated
// learning", ICML 2025): clients learn an update of the server's weights that is made of few numbers, block
// by block a Kronecker product (BKD), one factor of which is fixed for the round (AAD), and send these. The
// first and the last layer, batch norm and biases are learned and sent as they are; the model is real.

#include <fmt/format.h>

#include <algorithm>

#include "bitfed/federated/arithmetic/kronecker_update.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/network/network_method.h"

namespace bitfed {
namespace {

struct Decomposition {
  double ratio = 1.0 / 32;
  uint64_t seed = 0;  // of the fixed factors

  // Of parameter p; the same at the server and at all clients of a round.
  KroneckerUpdate update_of(size_t p, const Parameter& parameter, uint32_t round) const {
    return {parameter.count(), ratio, RandomStream({seed, "fedmud", round}).substream(p)};
  }
};

std::string factors_name(const Parameter& parameter) {
  return parameter.name + ".factors";
}

// For each parameter, whether it is sent in factors.
std::vector<bool> decomposed(const ParameterShapes& shapes) {
  std::vector<bool> is(shapes.size());
  size_t first = shapes.size();
  size_t last = 0;
  for (size_t p = 0; p < shapes.size(); ++p) {
    is[p] = is_product_weights(*shapes[p]);
    if (is[p]) first = std::min(first, p);
    if (is[p]) last = p;
  }
  is[first] = is[last] = false;
  return is;
}

class DecomposedTraining : public LocalTraining {
 public:
  DecomposedTraining(const Decomposition& decomposition, const LocalContext& context)
      : network_(*context.network), round_(context.round) {
    const ParameterShapes parameters = network_.parameters();
    const std::vector<bool> in_factors = decomposed(parameters);
    for (size_t p = 0; p < parameters.size(); ++p) {
      if (in_factors[p])
        layers_.push_back(
            {parameters[p], parameters[p]->numbers(), decomposition.update_of(p, *parameters[p], round_)});
    }
  }

  void descend(float rate) override {
    network_.descend(rate);  // of the decomposed weights nothing is kept
    for (Layer& layer : layers_) {
      layer.parameter->gradient_numbers(&numbers_);
      layer.update.descend(numbers_, rate);
      layer.update.values(&numbers_);
      for (size_t i = 0; i < numbers_.size(); ++i) numbers_[i] += layer.server[i];
      layer.parameter->assign(numbers_);
    }
  }

  State upload() override {
    State state;
    state.add_scalar<uint32_t>("round", round_);
    auto layer = layers_.begin();
    for (Parameter* parameter : network_.parameters()) {
      if (layer != layers_.end() && layer->parameter == parameter) {
        const std::vector<float>& factors = layer->update.factors();
        state.add(factors_name(*parameter), {factors.size()}, factors);
        ++layer;
      } else {
        add_parameters({parameter}, {parameter->numbers()}, &state);
      }
    }
    return state;
  }

 private:
  struct Layer {
    Parameter* parameter;
    std::vector<float> server;
    KroneckerUpdate update;
  };

  Network& network_;
  uint32_t round_;
  std::vector<Layer> layers_;
  std::vector<float> numbers_;
};

NetworkParameters read_upload(const Decomposition& decomposition, const ParameterShapes& shapes,
                              const NetworkParameters& broadcast, const State& upload) {
  const auto round = upload.scalar<uint32_t>("round");
  const std::vector<bool> in_factors = decomposed(shapes);
  NetworkParameters parameters;
  for (size_t p = 0; p < shapes.size(); ++p) {
    if (!in_factors[p]) {
      parameters.push_back(read_parameters({shapes[p]}, upload)[0]);
      continue;
    }
    KroneckerUpdate update = decomposition.update_of(p, *shapes[p], round);
    update.factors() = upload.values<float>(factors_name(*shapes[p]), {update.factors().size()});
    std::vector<float>& numbers = parameters.emplace_back();
    update.values(&numbers);
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += broadcast[p][i];
  }
  return parameters;
}

}  // namespace

std::unique_ptr<Method> make_fedmud(const MethodContext& context) {
  Decomposition decomposition;
  decomposition.ratio = context.recipe.section("method").number("ratio", 1.0 / 32, 1e-6, 1);
  decomposition.seed = context.seed;
  NetworkMethod method = real_network_method(context);
  method.key = fmt::format("fedmud ratio={}", decomposition.ratio);
  method.learning_rate = 0.01;
  method.make = [make = method.make](size_t batch, const RandomStream& random) {
    Network network = make(batch, random);
    start_small(random, &network);
    return network;
  };
  method.train = [decomposition](const LocalContext& local) {
    return std::make_unique<DecomposedTraining>(decomposition, local);
  };
  method.read_upload = [decomposition](const ParameterShapes& shapes, const NetworkParameters& broadcast,
                                       const State& upload) {
    return read_upload(decomposition, shapes, broadcast, upload);
  };
  method.notes = {"FedMUD: all convolutions but the first are decomposed, those of residual blocks too"};
  return make_network_method(context, std::move(method));
}

}  // namespace bitfed
