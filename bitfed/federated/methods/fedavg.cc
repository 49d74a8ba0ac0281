// FedAvg (McMahan et al., "Communication-efficient learning of deep networks from decentralized data",
// AISTATS 2017) with real-valued networks; for tables with perceptrons.

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/network/network_method.h"

namespace bitfed {
namespace {

// By name, or because the data is a table.
bool takes_perceptron(const MethodContext& context) {
  const Config model = context.recipe.section("model");
  return model.has("name") ? model.required_string("name") == "mlp" : context.prototype.is_table();
}

NetworkTraining training_of(const MethodContext& context) {
  NetworkTraining training = real_network_training(context);
  training.key = "fedavg";
  return training;
}

}  // namespace

std::unique_ptr<ClientHalf> make_fedavg_client(const MethodContext& context) {
  if (takes_perceptron(context)) return make_perceptron_client(context);
  return make_network_client(context, training_of(context));
}

std::unique_ptr<Method> make_fedavg(const MethodContext& context) {
  if (takes_perceptron(context)) return make_perceptrons(context);
  return make_network_method(context, real_network_method(training_of(context)));
}

}  // namespace bitfed
