// FedAvg (McMahan et al., "Communication-efficient learning of deep networks from decentralized data",
// AISTATS 2017) with real-valued networks.

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/methods/network_method.h"

namespace bitfed {

std::unique_ptr<Method> make_fedavg(const MethodContext& context) {
  NetworkMethod method;
  method.key = "fedavg";
  method.spec = read_network(context.recipe, context.prototype, false);
  method.make = [spec = method.spec](size_t batch, const RandomStream& random) {
    return make_network(spec, batch, random);
  };
  method.deploy = [spec = method.spec](const NetworkParameters& parameters) {
    return std::make_unique<NetworkModel>(spec, parameters);
  };
  return make_network_method(context, std::move(method));
}

}  // namespace bitfed
