// FedProx (Li et al., "Federated optimization in heterogeneous networks", MLSys 2020): FedAvg whose clients
// are held back. To the loss a client adds mu / 2 times the squared distance of its learned parameters from
// those that it received.

#include <fmt/format.h>

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/network/network_method.h"

namespace bitfed {
namespace {

class ProximalDescent : public PlainDescent {
 public:
  ProximalDescent(const LocalContext& local, float mu)
      : PlainDescent(local), mu_(mu), received_(local.trainer->parameters(local.client)) {}

  void descend(const Descent& descent) override {
    Trainer& trainer = *context().trainer;
    for (size_t p = 0; p < received_.size(); ++p) {
      if (trainer.shapes()[p].statistic) continue;
      trainer.get_values(context().client, p, &pull_);
      for (size_t i = 0; i < pull_.size(); ++i) pull_[i] = mu_ * (pull_[i] - received_[p][i]);
      trainer.add_to_gradient(context().client, p, pull_);
    }
    PlainDescent::descend(descent);
  }

 private:
  float mu_;
  NetworkParameters received_;
  std::vector<float> pull_;  // of one parameter
};

NetworkTraining training_of(const MethodContext& context) {
  const double mu = context.recipe.section("method").number("mu", 0.01, 0, 1000);
  NetworkTraining training = real_network_training(context);
  training.key = fmt::format("fedprox mu={}", mu);
  training.train = [mu](const LocalContext& local) {
    return std::make_unique<ProximalDescent>(local, static_cast<float>(mu));
  };
  training.adds_to_gradient = true;
  return training;
}

}  // namespace

std::unique_ptr<ClientHalf> make_fedprox_client(const MethodContext& context) {
  return make_network_client(context, training_of(context));
}

std::unique_ptr<Method> make_fedprox(const MethodContext& context) {
  NetworkMethod method = real_network_method(training_of(context));
  method.notes = {"FedProx: every client does all of its epochs; the paper also takes partial work"};
  return make_network_method(context, std::move(method));
}

}  // namespace bitfed
