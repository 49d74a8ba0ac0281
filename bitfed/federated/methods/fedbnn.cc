// FedBNN ("Federated learning with binary neural networks: competitive accuracy at a fraction of the cost"):
// FedAvg of networks whose convolutions are binary while they are trained, their weights turned before the
// sign. The clients send latent weights, rotations, angles, norms and the dense layer; the server averages
// them all, the rotations too, which the next epoch sets right.

#include <fmt/format.h>

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/methods/network_method.h"

namespace bitfed {

std::unique_ptr<Method> make_fedbnn(const MethodContext& context) {
  const Config section = context.recipe.section("method");
  const RotatedOptions options{.lambda = section.flag("lambda", true), .beta = section.flag("beta", true)};
  NetworkMethod method;
  method.key = fmt::format("fedbnn lambda={} beta={}", options.lambda, options.beta);
  method.spec = read_network(context.recipe, context.prototype, true);
  method.make = [spec = method.spec, options](size_t batch, const RandomStream& random) {
    return make_rotated_network(spec, options, batch, random);
  };
  method.deploy = [spec = method.spec, options](const NetworkParameters& parameters) {
    Network network = make_rotated_network(spec, options, 1, RandomStream({.purpose = "replaced"}));
    assign_parameters(parameters, &network);
    network.begin_round();
    return std::make_unique<NetworkModel>(spec, network.deployed());
  };
  method.notes = {
      "one rotation for all filters of a layer, each filter turned by itself; the paper's text turns the "
      "layer "
      "as one vector",
      "the accuracy is that of the binary network as it is deployed; its first layer takes real inputs"};
  return make_network_method(context, std::move(method));
}

}  // namespace bitfed
