#include "bitfed/federated/methods/network_method.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/federated/exact_mean.h"

namespace bitfed {
namespace {

constexpr uint32_t kDefaultRounds = 500;

struct Recipe {
  uint32_t epochs = 5;
  uint32_t batch = 64;
  double rate = 0.1;
  uint32_t halve_from = 200;  // the round from which on the rate is halved, at once and
  uint32_t halve_every = 50;  // after each so many rounds more
  uint32_t rounds = kDefaultRounds;
  uint64_t seed = 0;
};

Recipe read_recipe(const MethodContext& context) {
  Recipe recipe;
  recipe.seed = context.seed;
  recipe.rounds = static_cast<uint32_t>(context.recipe.integer("rounds", kDefaultRounds, 1));
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
  Client(const NetworkMethod& method, const Recipe& recipe) : method_(method), recipe_(recipe) {}

  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    const auto rate = broadcast.scalar<float>("learning_rate");
    const auto round = broadcast.scalar<uint32_t>("round");
    if (!(rate > 0)) throw input_error("tensor 'learning_rate': found {}, expected a number above 0", rate);
    if (round < 1 || round > recipe_.rounds)
      throw input_error("tensor 'round': found {}, expected 1 to {}", round, recipe_.rounds);
    Network network =
        method_.make(std::min<size_t>(recipe_.batch, samples.size()), RandomStream({.purpose = "replaced"}));
    const ParameterShapes shapes = network.parameters();
    assign_parameters(read_parameters(shapes, broadcast), &network);
    network.begin_round();
    train_epochs(round, rate, samples, context, &network);
    network.end_round();
    const NetworkParameters parameters = parameters_of(network);
    for (const std::vector<float>& numbers : parameters) {
      if (!ExactMean::fits(numbers)) throw diverged(rate);
    }
    State upload;
    upload.add_scalar<uint32_t>("samples", static_cast<uint32_t>(samples.size()));
    add_parameters(shapes, parameters, &upload);
    return upload;
  }

 private:
  void train_epochs(uint32_t round, float rate, const Dataset& samples, const ClientContext& context,
                    Network* network) const {
    std::vector<uint32_t> order(samples.size());
    std::iota(order.begin(), order.end(), 0u);
    RandomStream random = context.random.substream(0);
    std::vector<uint16_t> labels;
    for (uint32_t epoch = 0; epoch < recipe_.epochs; ++epoch) {
      network->begin_epoch((round - 1 + static_cast<double>(epoch) / recipe_.epochs) / recipe_.rounds);
      random.shuffle(std::span(order));
      for (size_t first = 0; first < order.size(); first += recipe_.batch) {
        if (context.stop && context.stop()) throw Error(Error::Kind::kStopped, "stopped");
        const size_t images = std::min<size_t>(recipe_.batch, order.size() - first);
        labels.resize(images);
        for (size_t i = 0; i < images; ++i) {
          load_image(method_.spec, samples.image(order[first + i]), i, network);
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

  NetworkMethod method_;
  Recipe recipe_;
};

class Server : public ServerHalf {
 public:
  Server(const NetworkMethod& method, const Recipe& recipe)
      : method_(method),
        recipe_(recipe),
        network_(method.make(1, RandomStream({recipe.seed, "network"}))),
        global_(parameters_of(network_)),
        means_(global_.size()) {}

  State broadcast(uint32_t round) const override {
    State state = save();
    double rate = recipe_.rate;
    if (round >= recipe_.halve_from)
      rate /= std::exp2(1 + (round - recipe_.halve_from) / recipe_.halve_every);
    state.add_scalar("learning_rate", static_cast<float>(rate));
    state.add_scalar<uint32_t>("round", round);
    return state;
  }

  void accept(uint32_t /*client*/, const State& upload) override {
    const auto samples = upload.scalar<uint32_t>("samples");
    if (samples == 0)
      throw input_error("{}: tensor 'samples': found 0, expected at least 1", upload.source());
    const NetworkParameters parameters = read_parameters(network_.parameters(), upload);
    for (const std::vector<float>& numbers : parameters) {
      if (!ExactMean::fits(numbers))
        throw input_error("{}: found a parameter beyond ±{}", upload.source(), ExactMean::kLargest);
    }
    for (size_t i = 0; i < means_.size(); ++i) means_[i].add(parameters[i], samples);
  }

  void finish_round(uint32_t /*round*/) override {
    for (size_t i = 0; i < means_.size(); ++i) global_[i] = means_[i].mean();
    means_.assign(global_.size(), ExactMean());
  }

  std::unique_ptr<Model> model() const override { return method_.deploy(global_); }

  State save() const override {
    State state;
    add_parameters(network_.parameters(), global_, &state);
    return state;
  }

  void restore(const State& saved) override { global_ = read_parameters(network_.parameters(), saved); }

  std::vector<std::string> notes() const override { return method_.notes; }

 private:
  NetworkMethod method_;
  Recipe recipe_;
  mutable Network network_;  // for the names and shapes of its parameters, which it hands out to be changed
  NetworkParameters global_;
  std::vector<ExactMean> means_;
};

class AveragedNetworks : public Method {
 public:
  AveragedNetworks(NetworkMethod method, const Recipe& recipe)
      : method_(std::move(method)), recipe_(recipe) {}

  std::unique_ptr<ClientHalf> make_client() const override {
    return std::make_unique<Client>(method_, recipe_);
  }
  std::unique_ptr<ServerHalf> make_server() const override {
    return std::make_unique<Server>(method_, recipe_);
  }
  std::string client_key() const override { return method_.key; }
  uint32_t default_rounds() const override { return kDefaultRounds; }

 private:
  NetworkMethod method_;
  Recipe recipe_;
};

}  // namespace

std::unique_ptr<Method> make_network_method(const MethodContext& context, NetworkMethod method) {
  return std::make_unique<AveragedNetworks>(std::move(method), read_recipe(context));
}

}  // namespace bitfed
