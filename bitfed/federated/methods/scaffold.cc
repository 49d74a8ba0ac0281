// SCAFFOLD (Karimireddy et al., "SCAFFOLD: stochastic controlled averaging for federated learning", ICML
// 2020): client i keeps a control variate c_i, an estimate of its own gradient, and the server keeps their
// mean c. A client's steps are y <- y - rate (gradient - c_i + c). Afterwards, from K steps,
//   c_i <- c_i - c + (x - y) / (K rate)      (the paper's option II; x: the parameters that it received).
// The server knows x, c, the rate and K, so that clients send no more than FedAvg's do.

#include <algorithm>
#include <cmath>
#include <map>

#include "bitfed/base/error.h"
#include "bitfed/federated/arithmetic/client_mean.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/network/network_method.h"

namespace bitfed {
namespace {

// Only what is learned has a control variate.
ParameterShapes control_shapes(const ParameterShapes& shapes) {
  ParameterShapes controls;
  for (ParameterShape shape : shapes) {
    if (shape.statistic) continue;
    shape.name += ".control";
    controls.push_back(std::move(shape));
  }
  return controls;
}

NetworkParameters zeros(const ParameterShapes& shapes) {
  NetworkParameters result;
  for (const ParameterShape& shape : shapes) result.emplace_back(shape.count());
  return result;
}

// The learned ones of all parameters.
NetworkParameters learned(const ParameterShapes& shapes, NetworkParameters parameters) {
  NetworkParameters result;
  for (size_t p = 0; p < shapes.size(); ++p) {
    if (!shapes[p].statistic) result.push_back(std::move(parameters[p]));
  }
  return result;
}

// (x - y) / steps: the mean gradient times the rate.
NetworkParameters mean_step(const NetworkParameters& x, const NetworkParameters& y, size_t steps) {
  NetworkParameters result = x;
  for (size_t p = 0; p < x.size(); ++p) {
    for (size_t i = 0; i < x[p].size(); ++i) result[p][i] = (x[p][i] - y[p][i]) / static_cast<float>(steps);
  }
  return result;
}

// The same direction, with at most this norm. The sum has a fixed order.
void shorten(double bound, NetworkParameters* moved) {
  double square = 0;
  for (const std::vector<float>& values : *moved) {
    for (const float value : values) square += static_cast<double>(value) * value;
  }
  if (std::sqrt(square) <= bound) return;
  const double factor = bound / std::sqrt(square);
  for (std::vector<float>& values : *moved) {
    for (float& value : values) value = static_cast<float>(factor * value);
  }
}

// A bound of the norm of an update is one of its mean step once it is divided by the number of steps.
Combining without_norm_bound(Combining combining) {
  combining.norm_bound = 0;
  return combining;
}

class ControlledDescent : public PlainDescent {
 public:
  explicit ControlledDescent(const LocalContext& local)
      : PlainDescent(local),
        shapes_(control_shapes(local.trainer->shapes())),
        received_(learned(local.trainer->shapes(), local.trainer->parameters(local.client))),
        server_(read_parameters(shapes_, *local.broadcast)),
        own_(local.own->kept.empty() ? zeros(shapes_) : read_parameters(shapes_, local.own->kept)),
        correction_(server_) {
    for (size_t p = 0; p < own_.size(); ++p) {
      for (size_t i = 0; i < own_[p].size(); ++i) correction_[p][i] -= own_[p][i];
    }
  }

  void descend(const Descent& descent) override {
    Trainer& trainer = *context().trainer;
    size_t next = 0;
    for (size_t p = 0; p < trainer.shapes().size(); ++p) {
      if (!trainer.shapes()[p].statistic) trainer.add_to_gradient(context().client, p, correction_[next++]);
    }
    PlainDescent::descend(descent);
  }

  State upload(const NetworkParameters& parameters) override {
    const NetworkParameters present = learned(context().trainer->shapes(), parameters);
    const NetworkParameters moved = mean_step(received_, present, context().steps);
    for (size_t p = 0; p < own_.size(); ++p) {
      for (size_t i = 0; i < own_[p].size(); ++i) own_[p][i] += moved[p][i] / context().rate - server_[p][i];
      if (!ExactMean::fits(own_[p])) {
        throw failure(
            "training diverged, a control variate is no longer within ±{}: lower "
            "client.learning_rate (now {})",
            ExactMean::kLargest, context().rate);
      }
    }
    State kept;
    add_parameters(shapes_, own_, &kept);
    context().own->keep(std::move(kept));
    return PlainDescent::upload(parameters);
  }

 private:
  ParameterShapes shapes_;
  NetworkParameters received_, server_, own_;
  NetworkParameters correction_;  // c - c_i
};

// FedAvg's server, and the mean of the clients' control variates, weighted by samples as the parameters are.
// How many clients there are nobody knows: the mean is over those that have taken part.
class Server : public ServerHalf {
 public:
  Server(std::unique_ptr<ServerHalf> average, ParameterShapes shapes, const LocalWork& work,
         const Combining& combining)
      : average_(std::move(average)),
        work_(work),
        combining_(combining),
        shapes_(std::move(shapes)),
        control_shapes_(control_shapes(shapes_)),
        control_(zeros(control_shapes_)),
        mean_(without_norm_bound(combining), std::vector<bool>(control_.size(), true)) {
    look();
  }

  State broadcast(uint32_t round) const override {
    State state = average_->broadcast(round);
    add_parameters(control_shapes_, control_, &state);
    return state;
  }

  void accept(uint32_t client, const State& upload) override {
    const uint32_t samples = std::max<uint32_t>(upload.scalar<uint32_t>("samples"), 1);  // 0: refused below
    NetworkParameters moved =
        mean_step(present_, learned(shapes_, read_parameters(shapes_, upload)), work_.steps(samples));
    if (combining_.norm_bound > 0)
      shorten(combining_.norm_bound / static_cast<double>(work_.steps(samples)), &moved);
    for (const std::vector<float>& values : moved) {
      if (!ExactMean::fits(values))
        throw input_error("{}: found a parameter beyond ±{}", upload.source(), ExactMean::kLargest);
    }
    average_->accept(client, upload);  // or nothing has changed
    mean_.add(client, std::move(moved), samples, zeros(control_shapes_));
    samples_[client] = std::min(samples, combining_.max_samples);
  }

  // With N samples of all clients so far, N' of them known before, n in this round:
  //   c <- c N' / N + (n / N) (mean step / rate - c)
  void finish_round(uint32_t round) override {
    if (mean_.clients() > 0) {
      const double rate = average_->broadcast(round).scalar<float>("learning_rate");
      const auto here = static_cast<double>(mean_.samples());
      const auto before = static_cast<double>(all_samples_);
      all_samples_ = 0;
      for (const auto& [client, samples] : samples_) all_samples_ += samples;
      const auto all = static_cast<double>(all_samples_);
      const TensorValues moved = mean_.take();
      for (size_t p = 0; p < control_.size(); ++p) {
        for (size_t i = 0; i < control_[p].size(); ++i) {
          const double old = control_[p][i];
          control_[p][i] = static_cast<float>(old * (before / all) + here / all * (moved[p][i] / rate - old));
        }
      }
    }
    average_->finish_round(round);
    look();
  }

  std::unique_ptr<Model> model() const override { return average_->model(); }

  State save() const override {
    State state = average_->save();
    add_parameters(control_shapes_, control_, &state);
    std::vector<uint32_t> clients, samples;
    for (const auto& [client, count] : samples_) {
      clients.push_back(client);
      samples.push_back(count);
    }
    state.add("clients", {clients.size()}, clients);
    state.add("client_samples", {samples.size()}, samples);
    return state;
  }

  void restore(const State& saved) override {
    const auto clients = saved.values<uint32_t>("clients", {State::kAny});
    const auto samples = saved.values<uint32_t>("client_samples", {clients.size()});
    control_ = read_parameters(control_shapes_, saved);
    average_->restore(saved);
    samples_.clear();
    all_samples_ = 0;
    for (size_t i = 0; i < clients.size(); ++i) {
      samples_[clients[i]] = samples[i];
      all_samples_ += samples[i];
    }
    look();
  }

  std::vector<std::string> notes() const override { return average_->notes(); }

 private:
  void look() { present_ = learned(shapes_, read_parameters(shapes_, average_->save())); }

  std::unique_ptr<ServerHalf> average_;
  LocalWork work_;
  Combining combining_;
  ParameterShapes shapes_, control_shapes_;
  NetworkParameters control_;
  NetworkParameters present_;             // the learned parameters of this round's broadcast
  ClientMean mean_;                       // of the steps' means
  std::map<uint32_t, uint32_t> samples_;  // of every client that has taken part
  uint64_t all_samples_ = 0;              // of those known before this round
};

class Scaffold : public Method {
 public:
  Scaffold(std::unique_ptr<Method> average, const TrainedNetwork& network, const Config& recipe)
      : average_(std::move(average)), work_(read_local_work(recipe)), combining_(read_combining(recipe)) {
    Network built = make_trained_network(network, 1, RandomStream({.purpose = "replaced"}));
    shapes_ = shapes_of(built);
  }

  std::unique_ptr<ClientHalf> make_client() const override { return average_->make_client(); }
  std::unique_ptr<ServerHalf> make_server() const override {
    return std::make_unique<Server>(average_->make_server(), shapes_, work_, combining_);
  }
  std::string client_key() const override { return average_->client_key(); }
  uint32_t default_rounds() const override { return average_->default_rounds(); }

 private:
  std::unique_ptr<Method> average_;
  ParameterShapes shapes_;
  LocalWork work_;
  Combining combining_;
};

NetworkTraining training_of(const MethodContext& context) {
  NetworkTraining training = real_network_training(context);
  training.key = "scaffold";
  training.train = [](const LocalContext& local) { return std::make_unique<ControlledDescent>(local); };
  training.plain_steps = true;
  training.adds_to_gradient = true;
  return training;
}

}  // namespace

std::unique_ptr<ClientHalf> make_scaffold_client(const MethodContext& context) {
  return make_network_client(context, training_of(context));
}

std::unique_ptr<Method> make_scaffold(const MethodContext& context) {
  NetworkMethod method = real_network_method(training_of(context));
  method.notes = {
      "SCAFFOLD: means are weighted by samples and taken over the clients that have taken part so far; the "
      "paper's are over all clients alike"};
  const TrainedNetwork network = method.network;
  auto average = make_network_method(context, std::move(method));
  return std::make_unique<Scaffold>(std::move(average), network, context.recipe);
}

}  // namespace bitfed
