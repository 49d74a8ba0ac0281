// FedAvg (McMahan et al., "Communication-efficient learning of deep networks from decentralized data",
// AISTATS 2017): chosen clients train the broadcast network for some epochs, the server takes the mean by
// samples of all parameters and running statistics.

#include <cmath>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/federated/exact_mean.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/zoo/network_model.h"

namespace bitfed {
namespace {

struct Recipe {
  NetworkSpec spec;
  uint32_t epochs = 5;
  uint32_t batch = 64;
  double rate = 0.1;
  uint32_t halve_from = 200;  // the round from which on the rate is halved, at once and
  uint32_t halve_every = 50;  // after each so many rounds more
  uint64_t seed = 0;
};

Recipe read_recipe(const MethodContext& context) {
  Recipe recipe;
  recipe.spec = read_network(context.recipe, context.prototype);
  recipe.seed = context.seed;
  const Config client = context.recipe.section("client");
  recipe.epochs = static_cast<uint32_t>(client.integer("epochs", 5, 1, 100000));
  recipe.batch = static_cast<uint32_t>(client.integer("batch", 64, 1, 4096));
  recipe.rate = client.number("learning_rate", 0.1, 1e-9, 1000);
  recipe.halve_from = static_cast<uint32_t>(client.integer("halve_from", 200, 1));
  recipe.halve_every = static_cast<uint32_t>(client.integer("halve_every", 50, 1));
  return recipe;
}

class Client : public ClientHalf {
 public:
  explicit Client(Recipe recipe) : recipe_(std::move(recipe)) {}

  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    const auto rate = broadcast.scalar<float>("learning_rate");
    if (!(rate > 0)) throw input_error("tensor 'learning_rate': found {}, expected a number above 0", rate);
    Network network = make_network(recipe_.spec, std::min<size_t>(recipe_.batch, samples.size()),
                                   RandomStream({.purpose = "replaced"}));
    assign_parameters(read_parameters(recipe_.spec, broadcast), &network);
    train_epochs(rate, samples, context, &network);
    State upload;
    upload.add_scalar<uint32_t>("samples", static_cast<uint32_t>(samples.size()));
    const NetworkParameters parameters = parameters_of(network);
    for (const std::vector<float>& numbers : parameters) {
      if (!ExactMean::fits(numbers)) throw diverged(rate);
    }
    add_parameters(recipe_.spec, parameters, &upload);
    return upload;
  }

 private:
  void train_epochs(float rate, const Dataset& samples, const ClientContext& context,
                    Network* network) const {
    std::vector<uint32_t> order(samples.size());
    std::iota(order.begin(), order.end(), 0u);
    RandomStream random = context.random.substream(0);
    std::vector<uint16_t> labels;
    for (uint32_t epoch = 0; epoch < recipe_.epochs; ++epoch) {
      random.shuffle(std::span(order));
      for (size_t first = 0; first < order.size(); first += recipe_.batch) {
        if (context.stop && context.stop()) throw Error(Error::Kind::kStopped, "stopped");
        const size_t images = std::min<size_t>(recipe_.batch, order.size() - first);
        labels.resize(images);
        for (size_t i = 0; i < images; ++i) {
          load_image(recipe_.spec, samples.image(order[first + i]), i, network);
          labels[i] = samples.labels[order[first + i]];
        }
        if (!std::isfinite(network->differentiate(labels))) throw diverged(rate);
        network->descend(rate);
      }
      context.trained(samples.size());
      context.progress((epoch + 1.0) / recipe_.epochs);
    }
  }

  static Error diverged(float rate) {
    return failure("training diverged, its numbers are no longer finite: lower client.learning_rate (now {})",
                   rate);
  }

  Recipe recipe_;
};

class Server : public ServerHalf {
 public:
  explicit Server(Recipe recipe) : recipe_(std::move(recipe)) {
    Network network = make_network(recipe_.spec, 1, RandomStream({recipe_.seed, "network"}));
    global_ = parameters_of(network);
    means_.resize(global_.size());
  }

  State broadcast(uint32_t round) const override {
    State state = save();
    double rate = recipe_.rate;
    if (round >= recipe_.halve_from)
      rate /= std::exp2(1 + (round - recipe_.halve_from) / recipe_.halve_every);
    state.add_scalar("learning_rate", static_cast<float>(rate));
    return state;
  }

  void accept(uint32_t /*client*/, const State& upload) override {
    const auto samples = upload.scalar<uint32_t>("samples");
    if (samples == 0)
      throw input_error("{}: tensor 'samples': found 0, expected at least 1", upload.source());
    const NetworkParameters parameters = read_parameters(recipe_.spec, upload);
    for (const std::vector<float>& numbers : parameters) {
      if (!ExactMean::fits(numbers)) {
        throw input_error("{}: found a parameter beyond ±{}", upload.source(), ExactMean::kLargest);
      }
    }
    for (size_t i = 0; i < means_.size(); ++i) means_[i].add(parameters[i], samples);
  }

  void finish_round(uint32_t /*round*/) override {
    for (size_t i = 0; i < means_.size(); ++i) global_[i] = means_[i].mean();
    means_.assign(global_.size(), ExactMean());
  }

  std::unique_ptr<Model> model() const override {
    return std::make_unique<NetworkModel>(recipe_.spec, global_);
  }

  State save() const override {
    State state;
    add_parameters(recipe_.spec, global_, &state);
    return state;
  }

  void restore(const State& saved) override { global_ = read_parameters(recipe_.spec, saved); }

 private:
  Recipe recipe_;
  NetworkParameters global_;
  std::vector<ExactMean> means_;
};

class FedAvg : public Method {
 public:
  explicit FedAvg(Recipe recipe) : recipe_(std::move(recipe)) {}

  std::unique_ptr<ClientHalf> make_client() const override { return std::make_unique<Client>(recipe_); }
  std::unique_ptr<ServerHalf> make_server() const override { return std::make_unique<Server>(recipe_); }
  std::string client_key() const override { return "fedavg"; }
  uint32_t default_rounds() const override { return 500; }

 private:
  Recipe recipe_;
};

}  // namespace

std::unique_ptr<Method> make_fedavg(const MethodContext& context) {
  return std::make_unique<FedAvg>(read_recipe(context));
}

}  // namespace bitfed
