#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/random.h"
#include "bitfed/nn/rotated/rotated_weights.h"
#include "bitfed/zoo/network/network_parameters.h"
#include "bitfed/zoo/network/network_spec.h"

namespace bitfed {

// What a client trains: a network, real or with rotated binary weights.
struct TrainedNetwork {
  NetworkSpec spec;
  std::optional<RotatedOptions> rotated = {};  // none: real, trained as it is deployed
  bool tf32 = false;                           // products of real convolutions in TF32, see Trainers::tf32

  bool operator==(const TrainedNetwork&) const = default;
};

// Trains one network per client, side by side, by gradient descent on the cross-entropy. The CPU's form is
// make_cpu_trainer(); another device has a form of its own and must give the same bits. Clients are numbered
// from 0 to clients() - 1; what happens to one does not depend on the others. Within a round
// several threads may call what is of one client, each for another one.
class Trainer {
 public:
  virtual ~Trainer() = default;

  virtual size_t clients() const = 0;
  // Of every client's network, in order.
  virtual const ParameterShapes& shapes() const = 0;

  virtual void set_parameters(const NetworkParameters& parameters) = 0;  // of every client
  virtual NetworkParameters parameters(size_t client) const = 0;
  // One parameter, for methods that keep an update of their own next to the network's.
  virtual void set_values(size_t client, size_t parameter, std::span<const float> values) = 0;
  virtual void get_values(size_t client, size_t parameter, std::vector<float>* values) const = 0;
  virtual void get_gradient(size_t client, size_t parameter, std::vector<float>* gradient) const = 0;
  // For methods that descend along another gradient; a device may not have it, see Trainers::plain.
  virtual void add_to_gradient(size_t client, size_t parameter, std::span<const float> values);

  // Around a client's work of one round: the present parameters are what it began with, its velocity is 0;
  // `random` is for what the network draws while it trains.
  virtual void begin_round(size_t client, const RandomStream& random) = 0;
  // `progress`: the share of all rounds and epochs that is over, from 0 to 1.
  virtual void begin_epoch(size_t client, double progress) = 0;
  virtual void end_round(size_t client) = 0;

  // Puts an image at `index` of the client's next batch.
  virtual void load(size_t client, size_t index, std::span<const uint8_t> pixels) = 0;
  // The client's next step ends with this descend(), and nobody looks at its gradients or changes them: they
  // need not be kept.
  virtual void announce(size_t /*client*/, const Descent& /*descent*/) {}
  // One step for all clients: the gradients of each one's parameters, of the mean loss over its batch.
  // `labels`: one span per client, as long as its batch; a client without labels takes no step.
  virtual void differentiate(std::span<const std::span<const uint16_t>> labels) = 0;
  // Whether a loss of the client since begin_round was not finite. Asked after the last step of an epoch; a
  // device may still answer no then, for steps that it has not done yet, so that nobody waits for it. After
  // parameters() the answer is final.
  virtual bool diverged(size_t client) = 0;
  // One step along the client's gradients.
  virtual void descend(size_t client, const Descent& descent) = 0;
};

// For batches of at most `batch` images.
std::unique_ptr<Trainer> make_cpu_trainer(const TrainedNetwork& network, size_t clients, size_t batch);

// A device has not the memory for a trainer of so many clients.
class TrainerTooLarge : public Error {
 public:
  explicit TrainerTooLarge(const std::string& text) : Error(Kind::kFailure, text) {}
};

// How a device makes trainers, and how many clients one of them should get at most. The CPU's: one client per
// trainer, since threads work side by side.
struct Trainers {
  std::function<std::unique_ptr<Trainer>(const TrainedNetwork& network, size_t clients, size_t batch)> make =
      make_cpu_trainer;
  size_t cohort = 1;
  std::string device = {};  // for the summary; empty: the CPU
  // It has neither Adam nor Trainer::add_to_gradient. A method that needs them is refused.
  bool plain = false;
  bool tf32 = false;  // it has tensor cores for TrainedNetwork::tf32, with bits of their own
};

// The network of a TrainedNetwork on the CPU, for what a server does with it between rounds.
Network make_trained_network(const TrainedNetwork& network, size_t batch, const RandomStream& random);

}  // namespace bitfed
