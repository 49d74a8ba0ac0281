// FedMUD (Li et al., "The panaceas for improving low-rank decomposition in communication-efficient federated
// learning", ICML 2025): clients learn an update of the server's weights with few parameters, each block a
// Kronecker product (BKD) with one factor fixed for the round (AAD), and send these parameters. The first and
// the last layer, batch norm and biases are learned and sent as usual; the model is real-valued.

#include <fmt/format.h>

#include <algorithm>

#include "bitfed/federated/arithmetic/kronecker_update.h"
#include "bitfed/federated/expect_tensors.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/network/network_method.h"

namespace bitfed {
namespace {

struct Decomposition {
  double ratio = 1.0 / 32;
  uint64_t seed = 0;  // of the fixed factors

  // The update of parameter p; the same fixed factors at the server and all clients of a round.
  KroneckerUpdate update_of(size_t p, const ParameterShape& parameter, uint32_t round) const {
    return {parameter.count(), ratio, RandomStream({seed, "fedmud", round}).substream(p)};
  }
};

std::string factors_name(const ParameterShape& parameter) {
  return parameter.name + ".factors";
}

// Per parameter, whether it is sent as factors: all weights except those of the first and the last layer.
std::vector<bool> decomposed(const ParameterShapes& shapes) {
  std::vector<bool> is(shapes.size());
  size_t first = shapes.size();
  size_t last = 0;
  for (size_t p = 0; p < shapes.size(); ++p) {
    is[p] = is_product_weights(shapes[p]);
    if (is[p]) first = std::min(first, p);
    if (is[p]) last = p;
  }
  is[first] = is[last] = false;
  return is;
}

class DecomposedTraining : public LocalTraining {
 public:
  DecomposedTraining(const Decomposition& decomposition, const LocalContext& context) : context_(context) {
    const ParameterShapes& shapes = context.trainer->shapes();
    const NetworkParameters parameters = context.trainer->parameters(context.client);
    const std::vector<bool> in_factors = decomposed(shapes);
    for (size_t p = 0; p < shapes.size(); ++p) {
      if (in_factors[p])
        layers_.push_back({p, parameters[p], decomposition.update_of(p, shapes[p], context.round)});
    }
  }

  void descend(const Descent& descent) override {
    context_.trainer->descend(context_.client, descent);  // the new decomposed weights are overwritten below
    for (Layer& layer : layers_) {
      context_.trainer->get_gradient(context_.client, layer.parameter, &values_);
      layer.update.descend(values_, descent.rate);
      layer.update.values(&values_);
      for (size_t i = 0; i < values_.size(); ++i) values_[i] += layer.server[i];
      context_.trainer->set_values(context_.client, layer.parameter, values_);
    }
  }

  State upload(const NetworkParameters& parameters) override {
    State state;
    state.add_scalar<uint32_t>("round", context_.round);
    const ParameterShapes& shapes = context_.trainer->shapes();
    auto layer = layers_.begin();
    for (size_t p = 0; p < shapes.size(); ++p) {
      if (layer != layers_.end() && layer->parameter == p) {
        const std::vector<float>& factors = layer->update.factors();
        state.add(factors_name(shapes[p]), {factors.size()}, factors);
        ++layer;
      } else {
        add_parameter(shapes[p], parameters[p], &state);
      }
    }
    return state;
  }

 private:
  struct Layer {
    size_t parameter;
    std::vector<float> server;
    KroneckerUpdate update;
  };

  LocalContext context_;
  std::vector<Layer> layers_;
  std::vector<float> values_;
};

// The client names its round, so that the server draws the same fixed factors.
NetworkParameters read_upload(const Decomposition& decomposition, const ParameterShapes& shapes,
                              const NetworkParameters& broadcast, const State& upload) {
  const auto round = upload.scalar<uint32_t>("round");
  const std::vector<bool> in_factors = decomposed(shapes);
  NetworkParameters parameters;
  for (size_t p = 0; p < shapes.size(); ++p) {
    if (!in_factors[p]) {
      parameters.push_back(read_parameter(shapes[p], upload));
      continue;
    }
    KroneckerUpdate update = decomposition.update_of(p, shapes[p], round);
    update.factors() = upload.values<float>(factors_name(shapes[p]), {update.factors().size()});
    std::vector<float>& values = parameters.emplace_back();
    update.values(&values);
    for (size_t i = 0; i < values.size(); ++i) values[i] += broadcast[p][i];
  }
  expect_tensors(upload, shapes.size() + 2);  // samples, round
  return parameters;
}

Decomposition read_decomposition(const MethodContext& context) {
  return {context.recipe.section("method").number("ratio", 1.0 / 32, 1e-6, 1), context.seed};
}

NetworkTraining training_of(const MethodContext& context) {
  const Decomposition decomposition = read_decomposition(context);
  NetworkTraining training = real_network_training(context);
  training.key = fmt::format("fedmud ratio={}", decomposition.ratio);
  training.learning_rate = 0.01;
  training.plain_steps = true;
  training.train = [decomposition](const LocalContext& local) {
    return std::make_unique<DecomposedTraining>(decomposition, local);
  };
  training.read_upload = [decomposition](const ParameterShapes& shapes, const NetworkParameters& broadcast,
                                         const State& upload) {
    return read_upload(decomposition, shapes, broadcast, upload);
  };
  return training;
}

}  // namespace

std::unique_ptr<ClientHalf> make_fedmud_client(const MethodContext& context) {
  return make_network_client(context, training_of(context));
}

std::unique_ptr<Method> make_fedmud(const MethodContext& context) {
  NetworkMethod method = real_network_method(training_of(context));
  method.initialise = initialise_small;
  method.notes = {
      "FedMUD: all convolutions except the first are decomposed, including those of residual blocks"};
  return make_network_method(context, std::move(method));
}

}  // namespace bitfed
