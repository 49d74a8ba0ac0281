// FedBNN ("Federated learning with binary neural networks: competitive accuracy at a fraction of the cost"):
// FedAvg of networks whose convolutions are binary in training; the weights are rotated before their sign is
// taken. The clients send latent weights, rotations, angles, batch norm and the dense layer; the server
// averages all of them. The mean of rotations is not a rotation, but the next epoch recomputes it. The
// paper's two variants (Table 2): "orthogonal" projects the mean onto the orthogonal matrices; with "server",
// the server computes the rotations and clients send none. With "none", the weights are not rotated.

#include <fmt/format.h>

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/network/network_method.h"
#include "bitfed/zoo/network/network_recipe.h"

namespace bitfed {

namespace {

RotationUpdate rotation_named(const std::string& name) {
  if (name == "client") return RotationUpdate::kEveryEpoch;
  if (name == "none") return RotationUpdate::kNone;
  return name == "orthogonal" ? RotationUpdate::kEveryEpochOrthogonal : RotationUpdate::kFixed;
}

bool is_rotation(const ParameterShape& parameter) {
  return parameter.name.ends_with(".r1") || parameter.name.ends_with(".r2");
}

// The parameters of a layer's lambda and beta.
bool is_blend(const ParameterShape& parameter) {
  return parameter.name.ends_with(".lambda") || parameter.name.ends_with(".gamma");
}

bool server_rotates(const RotatedOptions& options) {
  return options.rotation == RotationUpdate::kFixed;
}

// Fits the rotation R to the weights, as a client does at the start of an epoch.
void rotate_at_server(const NetworkSpec& spec, RotatedOptions options, NetworkParameters* parameters) {
  options.rotation = RotationUpdate::kEveryEpoch;
  Network network = make_rotated_network(spec, options, 1, RandomStream({.purpose = "replaced"}));
  assign_parameters(*parameters, &network);
  network.set_anchor();
  network.begin_epoch(0);
  *parameters = parameters_of(network);
}

NetworkTraining training_of(const MethodContext& context) {
  const Config section = context.recipe.section("method");
  const std::vector<std::string> rotations = {"client", "orthogonal", "server", "none"};
  const std::string rotation = section.choice("rotation", rotations[0], rotations);
  RotatedOptions options{.lambda = section.flag("lambda", true),
                         .beta = section.flag("beta", true),
                         .rotation = rotation_named(rotation)};
  // Read only where it is given: earlier runs were recorded without it.
  if (section.has("initial_scale")) options.initial_scale = section.number("initial_scale", 1, 1e-3, 1000);
  NetworkTraining training;
  training.key = fmt::format("fedbnn lambda={} beta={} rotation={}", options.lambda, options.beta, rotation);
  training.network = {read_network(context.recipe, context.prototype, true), options};
  // The server keeps the initial lambda and beta, so that clients learn their own again in every round.
  training.sends = [server_rotates = server_rotates(options)](const ParameterShape& parameter) {
    return !is_blend(parameter) && !(server_rotates && is_rotation(parameter));
  };
  return training;
}

}  // namespace

std::unique_ptr<ClientHalf> make_fedbnn_client(const MethodContext& context) {
  return make_network_client(context, training_of(context));
}

std::unique_ptr<Method> make_fedbnn(const MethodContext& context) {
  NetworkMethod method{training_of(context)};
  const NetworkSpec spec = method.network.spec;
  const RotatedOptions options = *method.network.rotated;
  method.deploy = [spec, options](const NetworkParameters& parameters) {
    Network network = make_rotated_network(spec, options, 1, RandomStream({.purpose = "replaced"}));
    assign_parameters(parameters, &network);
    network.set_anchor();
    return std::make_unique<NetworkModel>(spec, network.deployed());
  };
  if (server_rotates(options)) {
    method.settle = [spec, options](NetworkParameters* parameters) {
      rotate_at_server(spec, options, parameters);
    };
  }
  method.notes = {
      options.rotation == RotationUpdate::kNone
          ? "the weights are not rotated; the paper's are"
          : "one rotation for all filters of a layer, each filter rotated by itself; the paper's text rotates "
            "the layer as one vector",
      "the slope of the activations' surrogate gradient stays at t = 1; the paper uses one surrogate for "
      "weights and activations",
      "the accuracy is measured on the binary network as deployed; its first layer has real-valued inputs"};
  if (spec.shortcuts == Shortcuts::kConvolution)
    method.notes.emplace_back(
        "a shortcut around each convolution; the paper does not say which its blocks have");
  if (options.lambda || options.beta)
    method.notes.emplace_back(
        "clients learn lambda and beta again in every round; the paper averages all learned parameters");
  return make_network_method(context, std::move(method));
}

}  // namespace bitfed
