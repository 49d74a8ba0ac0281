// FedBNN ("Federated learning with binary neural networks: competitive accuracy at a fraction of the cost"):
// FedAvg of networks whose convolutions are binary while they are trained, their weights turned before the
// sign. The clients send latent weights, rotations, angles, norms and the dense layer; the server averages
// them all, the rotations too, which the next epoch sets right. Of the paper's two other ways (Table 2) one
// makes the mean of rotations orthogonal first, the other has the server compute them and clients send none.

#include <fmt/format.h>

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/network/network_method.h"

namespace bitfed {

namespace {

RotationBy rotation_named(const std::string& name) {
  if (name == "client") return RotationBy::kClient;
  return name == "orthogonal" ? RotationBy::kClientOrthogonal : RotationBy::kServer;
}

bool is_rotation(const Parameter& parameter) {
  return parameter.name.ends_with(".r1") || parameter.name.ends_with(".r2");
}

// What a layer's lambda and beta are learned by.
bool is_blend(const Parameter& parameter) {
  return parameter.name.ends_with(".lambda") || parameter.name.ends_with(".gamma");
}

// Turns R toward the weights, as a client does at the start of an epoch.
void rotate_at_server(const NetworkSpec& spec, RotatedOptions options, NetworkParameters* parameters) {
  options.rotation = RotationBy::kClient;
  Network network = make_rotated_network(spec, options, 1, RandomStream({.purpose = "replaced"}));
  assign_parameters(*parameters, &network);
  network.begin_round();
  network.begin_epoch(0);
  *parameters = parameters_of(network);
}

}  // namespace

std::unique_ptr<Method> make_fedbnn(const MethodContext& context) {
  const Config section = context.recipe.section("method");
  const std::vector<std::string> rotations = {"client", "orthogonal", "server"};
  const std::string rotation = section.choice("rotation", rotations[0], rotations);
  const RotatedOptions options{.lambda = section.flag("lambda", true),
                               .beta = section.flag("beta", true),
                               .rotation = rotation_named(rotation)};
  NetworkMethod method;
  method.key = fmt::format("fedbnn lambda={} beta={} rotation={}", options.lambda, options.beta, rotation);
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
  const bool server_rotates = options.rotation == RotationBy::kServer;
  // The server keeps the blend that it started with, so that clients learn theirs anew in every round.
  method.sends = [server_rotates](const Parameter& parameter) {
    return !is_blend(parameter) && !(server_rotates && is_rotation(parameter));
  };
  if (server_rotates) {
    method.settle = [spec = method.spec, options](NetworkParameters* parameters) {
      rotate_at_server(spec, options, parameters);
    };
  }
  method.notes = {
      "one rotation for all filters of a layer, each filter turned by itself; the paper's text turns the "
      "layer as one vector",
      "the slope of activations stays at t = 1; the paper has one surrogate for weights and activations",
      "the accuracy is that of the binary network as it is deployed; its first layer takes real inputs"};
  if (options.lambda || options.beta)
    method.notes.emplace_back(
        "clients learn lambda and beta anew in every round; the paper averages all that is learned");
  return make_network_method(context, std::move(method));
}

}  // namespace bitfed
