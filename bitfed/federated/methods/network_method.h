#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bitfed/federated/method.h"
#include "bitfed/zoo/network_model.h"

namespace bitfed {

// What FedAvg and its kin share: chosen clients train a network by gradient descent for some epochs, the
// server takes the mean by samples of all parameters and running statistics.
struct NetworkMethod {
  std::string key;  // see Method::client_key
  NetworkSpec spec;
  // The network as clients train it, for batches of this size.
  std::function<Network(size_t batch, const RandomStream& random)> make;
  // The model that the server's parameters are.
  std::function<std::unique_ptr<Model>(const NetworkParameters& parameters)> deploy;
  std::vector<std::string> notes;
};

// Reads [client] epochs, batch, learning_rate, halve_from, halve_every, and rounds.
std::unique_ptr<Method> make_network_method(const MethodContext& context, NetworkMethod method);

}  // namespace bitfed
