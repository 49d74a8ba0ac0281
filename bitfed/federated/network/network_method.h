#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bitfed/federated/method.h"
#include "bitfed/zoo/network/network_model.h"
#include "bitfed/zoo/network/trainer.h"

namespace bitfed {

// What a client does in a round: passes over its samples, in batches.
struct LocalWork {
  uint32_t epochs = 5;
  uint32_t batch = 64;

  size_t steps(size_t samples) const { return (samples + batch - 1) / batch * epochs; }
};
LocalWork read_local_work(const Config& recipe);

// A client's network in one round's training. What it points to outlives the training.
struct LocalContext {
  Trainer* trainer = nullptr;  // holds the broadcast parameters
  size_t client = 0;           // of the trainer
  size_t steps = 0;            // of the whole round
  uint32_t round = 0;
  float rate = 0;  // of this round
  RandomStream random;
  const State* broadcast = nullptr;
  const ClientContext* own = nullptr;  // what the client kept, and how it keeps
};

// One client's training in one round: what a step does with the gradients, and what is sent in the end.
class LocalTraining {
 public:
  virtual ~LocalTraining() = default;
  virtual void before_step() {}                      // sets the parameters that the next step uses
  virtual void descend(const Descent& descent) = 0;  // the trainer has the client's gradients
  // After the last step, from the client's parameters then; without `samples`. Of the trainer it uses the
  // shapes alone, so that the clients of a cohort can do it at the same time.
  virtual State upload(const NetworkParameters& parameters) = 0;
};

// Which parameters clients send.
using Sends = std::function<bool(const ParameterShape& parameter)>;

// Gradient descent of all parameters, which are sent as they are. Methods that descend along another gradient
// change it before they call descend().
class PlainDescent : public LocalTraining {
 public:
  explicit PlainDescent(const LocalContext& context, Sends sends = {})
      : context_(context), sends_(std::move(sends)) {}

  void descend(const Descent& descent) override { context_.trainer->descend(context_.client, descent); }
  State upload(const NetworkParameters& parameters) override;

 protected:
  const LocalContext& context() const { return context_; }

 private:
  LocalContext context_;
  Sends sends_;
};

// What FedAvg and its relatives share: the chosen clients train a network by gradient descent for some
// epochs, the server takes the sample-weighted mean of all parameters and running statistics. First the
// clients' part.
struct NetworkTraining {
  std::string key;  // see Method::client_key
  TrainedNetwork network;
  double learning_rate = 0.1;  // the default
  // Whether clients send a parameter; those that they do not send stay the server's. None: they send all.
  Sends sends;
  // None: PlainDescent.
  std::function<std::unique_ptr<LocalTraining>(const LocalContext& context)> train;
  // The inverse of LocalTraining::upload, given what was broadcast: the client's parameters. An input_error
  // for whatever does not fit. None: as they are.
  std::function<NetworkParameters(const ParameterShapes& shapes, const NetworkParameters& broadcast,
                                  const State& upload)>
      read_upload;
  // A step must be the rate times the gradient: Adam, momentum and weight decay are unknown keys.
  bool plain_steps = false;
  bool adds_to_gradient = false;  // see Trainer::add_to_gradient
};

// And the server's.
struct NetworkMethod : NetworkTraining {
  // Changes the freshly initialised parameters of the server. None: they stay.
  std::function<void(const RandomStream& random, const ParameterShapes& shapes, NetworkParameters*)>
      initialise = {};
  // The model of the server's parameters.
  std::function<std::unique_ptr<Model>(const NetworkParameters& parameters)> deploy = {};
  // What the server does to its first parameters and to every new mean. None: nothing.
  std::function<void(NetworkParameters* parameters)> settle = {};
  std::vector<std::string> notes = {};
};

// Whether these are the weights of a convolution or a dense layer.
bool is_product_weights(const ParameterShape& parameter);

// Initialises all such weights by normal draws of standard deviation 0.01, as FedBAT and FedMUD do.
void initialise_small(const RandomStream& random, const ParameterShapes& shapes,
                      NetworkParameters* parameters);

// FedAvg of networks that are deployed as they are trained, in real numbers.
NetworkTraining real_network_training(const MethodContext& context);
NetworkMethod real_network_method(NetworkTraining training);

// Trains by the context's trainers. Reads [client] epochs, batch, optimizer, learning_rate and its schedule,
// momentum, weight_decay, augment, and rounds; of [federation] how the server combines uploads.
std::unique_ptr<ClientHalf> make_network_client(const MethodContext& context, NetworkTraining training);
std::unique_ptr<Method> make_network_method(const MethodContext& context, NetworkMethod method);

}  // namespace bitfed
