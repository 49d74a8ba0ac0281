// FedAvg (McMahan et al., "Communication-efficient learning of deep networks from decentralized data",
// AISTATS 2017) with real-valued networks.

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/network/network_method.h"

namespace bitfed {
namespace {

NetworkTraining training_of(const MethodContext& context) {
  NetworkTraining training = real_network_training(context);
  training.key = "fedavg";
  return training;
}

}  // namespace

std::unique_ptr<ClientHalf> make_fedavg_client(const MethodContext& context) {
  return make_network_client(context, training_of(context));
}

std::unique_ptr<Method> make_fedavg(const MethodContext& context) {
  return make_network_method(context, real_network_method(training_of(context)));
}

}  // namespace bitfed
