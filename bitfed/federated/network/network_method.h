#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bitfed/federated/method.h"
#include "bitfed/zoo/network_model.h"

namespace bitfed {

// A client's work on its network in one round: what a step does with the gradients, and what is sent of it.
class LocalTraining {
 public:
  virtual ~LocalTraining() = default;
  virtual void before_step() {}          // the network's parameters are those of the next step after this
  virtual void descend(float rate) = 0;  // the network's gradients are there
  virtual State upload() = 0;            // after the last step; without `samples`
};

// What it is given. The network holds what the server broadcast, and outlives it.
struct LocalContext {
  Network* network = nullptr;
  size_t steps = 0;  // of the whole round
  uint32_t round = 0;
  RandomStream random;
};

// What FedAvg and its kin share: chosen clients train a network by gradient descent for some epochs, the
// server takes the mean by samples of all parameters and running statistics.
struct NetworkMethod {
  std::string key;  // see Method::client_key
  NetworkSpec spec;
  double learning_rate = 0.1;  // where the recipe says nothing
  // The network as clients train it, for batches of this size.
  std::function<Network(size_t batch, const RandomStream& random)> make;
  // The model that the server's parameters are.
  std::function<std::unique_ptr<Model>(const NetworkParameters& parameters)> deploy;
  // Whether clients send a parameter; those that they do not send stay the server's. None: they send all.
  std::function<bool(const Parameter& parameter)> sends;
  // What the server does to the parameters that it starts from, and to every new mean. None: nothing.
  std::function<void(NetworkParameters* parameters)> settle;
  // None: plain descent.
  std::function<std::unique_ptr<LocalTraining>(const LocalContext& context)> train;
  // The inverse of LocalTraining::upload, given what was broadcast: the client's parameters. An input_error
  // for whatever does not fit.
  std::function<NetworkParameters(const ParameterShapes& shapes, const NetworkParameters& broadcast,
                                  const State& upload)>
      read_upload;
  std::vector<std::string> notes;
};

// Whether these are the weights of a convolution or a dense layer.
bool is_product_weights(const Parameter& parameter);

// Starts all of them from normal draws of deviation 0.01, as FedBAT and FedMUD do.
void start_small(const RandomStream& random, Network* network);

// FedAvg of networks that are deployed as they are trained, in real numbers.
NetworkMethod real_network_method(const MethodContext& context);

// Reads [client] epochs, batch, learning_rate, halve_from, halve_every, augment, and rounds; of [federation]
// how the server combines what comes.
std::unique_ptr<Method> make_network_method(const MethodContext& context, NetworkMethod method);

}  // namespace bitfed
