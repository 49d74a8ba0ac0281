// FedAvg (McMahan et al., "Communication-efficient learning of deep networks from decentralized data",
// AISTATS 2017) with real-valued networks.

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/network/network_method.h"

namespace bitfed {

std::unique_ptr<Method> make_fedavg(const MethodContext& context) {
  NetworkMethod method = real_network_method(context);
  method.key = "fedavg";
  return make_network_method(context, std::move(method));
}

}  // namespace bitfed
