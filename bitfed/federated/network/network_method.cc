#include "bitfed/federated/network/network_method.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/data/augmentation.h"
#include "bitfed/federated/arithmetic/client_mean.h"

namespace bitfed {
namespace {

constexpr uint32_t kDefaultRounds = 500;

struct Recipe {
  uint32_t epochs = 5;
  uint32_t batch = 64;
  double rate = 0.1;
  uint32_t halve_from = 0;   // the round from which on the rate is halved, at once and
  uint32_t halve_every = 0;  // after each so many rounds more
  Augmentation augmentation = Augmentation::kNone;
  Combining combining;
  uint32_t rounds = kDefaultRounds;
  uint64_t seed = 0;
};

Recipe read_recipe(const MethodContext& context, double learning_rate) {
  Recipe recipe;
  recipe.seed = context.seed;
  recipe.rounds = static_cast<uint32_t>(context.recipe.integer("rounds", kDefaultRounds, 1));
  const Config client = context.recipe.section("client");
  recipe.epochs = static_cast<uint32_t>(client.integer("epochs", 5, 1, 100000));
  recipe.batch = static_cast<uint32_t>(client.integer("batch", 64, 1, 4096));
  recipe.rate = client.number("learning_rate", learning_rate, 1e-9, 1000);
  // The paper's 200 and 50 of 500 rounds: a shorter run lowers it as well.
  recipe.halve_from =
      static_cast<uint32_t>(client.integer("halve_from", std::max<uint32_t>(2, recipe.rounds / 5 * 2), 1));
  recipe.halve_every =
      static_cast<uint32_t>(client.integer("halve_every", std::max<uint32_t>(1, recipe.rounds / 10), 1));
  const std::vector<std::string> augmentations = {"none", "crop-flip"};
  if (client.choice("augment", "none", augmentations) == "crop-flip")
    recipe.augmentation = Augmentation::kCropFlip;
  recipe.combining = read_combining(context.recipe);
  return recipe;
}

class PlainDescent : public LocalTraining {
 public:
  PlainDescent(const NetworkMethod& method, const LocalContext& context)
      : sends_(method.sends), network_(*context.network) {}

  void descend(float rate) override { network_.descend(rate); }
  State upload() override {
    State state;
    for (Parameter* parameter : network_.parameters()) {
      if (!sends_ || sends_(*parameter)) add_parameters({parameter}, {parameter->numbers()}, &state);
    }
    return state;
  }

 private:
  std::function<bool(const Parameter&)> sends_;
  Network& network_;
};

NetworkParameters read_plain_upload(const NetworkMethod& method, const ParameterShapes& shapes,
                                    const NetworkParameters& broadcast, const State& upload) {
  NetworkParameters parameters;
  for (size_t p = 0; p < shapes.size(); ++p) {
    const bool sent = !method.sends || method.sends(*shapes[p]);
    parameters.push_back(sent ? read_parameters({shapes[p]}, upload)[0] : broadcast[p]);
  }
  return parameters;
}

// Puts samples into a network, changed where the recipe says so.
class Loader {
 public:
  Loader(const NetworkSpec& spec, const Dataset& samples, Augmentation augmentation,
         const RandomStream& random)
      : spec_(spec), samples_(samples), augmentation_(augmentation), random_(random) {}

  void load(uint32_t sample, size_t place, Network* network) {
    std::span<const uint8_t> pixels = samples_.image(sample);
    if (augmentation_ == Augmentation::kCropFlip) {
      moved_.resize(pixels.size());
      move_image(samples_, pixels, ImageMove::draw(&random_), moved_);
      pixels = moved_;
    }
    load_image(spec_, pixels, place, network);
  }

 private:
  const NetworkSpec& spec_;
  const Dataset& samples_;
  Augmentation augmentation_;
  RandomStream random_;
  std::vector<uint8_t> moved_;
};

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
    assign_parameters(read_parameters(network.parameters(), broadcast), &network);
    network.begin_round();
    const size_t batches = (samples.size() + recipe_.batch - 1) / recipe_.batch;
    const LocalContext local{&network, batches * recipe_.epochs, round, context.random.substream(2)};
    const std::unique_ptr<LocalTraining> training =
        method_.train ? method_.train(local) : std::make_unique<PlainDescent>(method_, local);
    train_epochs(round, rate, samples, context, &network, training.get());
    network.end_round();
    for (const std::vector<float>& numbers : parameters_of(network)) {
      if (!ExactMean::fits(numbers)) throw diverged(rate);
    }
    State upload = training->upload();
    upload.add_scalar<uint32_t>("samples", static_cast<uint32_t>(samples.size()));
    return upload;
  }

 private:
  void train_epochs(uint32_t round, float rate, const Dataset& samples, const ClientContext& context,
                    Network* network, LocalTraining* training) const {
    std::vector<uint32_t> order(samples.size());
    std::iota(order.begin(), order.end(), 0u);
    RandomStream random = context.random.substream(0);
    Loader loader(method_.spec, samples, recipe_.augmentation, context.random.substream(1));
    std::vector<uint16_t> labels;
    for (uint32_t epoch = 0; epoch < recipe_.epochs; ++epoch) {
      network->begin_epoch((round - 1 + static_cast<double>(epoch) / recipe_.epochs) / recipe_.rounds);
      random.shuffle(std::span(order));
      for (size_t first = 0; first < order.size(); first += recipe_.batch) {
        if (context.stop && context.stop()) throw Error(Error::Kind::kStopped, "stopped");
        const size_t images = std::min<size_t>(recipe_.batch, order.size() - first);
        labels.resize(images);
        for (size_t i = 0; i < images; ++i) {
          loader.load(order[first + i], i, network);
          labels[i] = samples.labels[order[first + i]];
        }
        training->before_step();
        if (!std::isfinite(network->differentiate(labels))) throw diverged(rate);
        training->descend(rate);
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

// Of each parameter, whether it is learned, and not gathered.
std::vector<bool> learned(Network& network) {
  std::vector<bool> result;
  for (const Parameter* parameter : network.parameters()) result.push_back(!parameter->statistic);
  return result;
}

class Server : public ServerHalf {
 public:
  Server(const NetworkMethod& method, const Recipe& recipe)
      : method_(method),
        recipe_(recipe),
        network_(method.make(1, RandomStream({recipe.seed, "network"}))),
        global_(parameters_of(network_)),
        mean_(recipe.combining, learned(network_)) {
    if (method_.settle) method_.settle(&global_);
  }

  State broadcast(uint32_t round) const override {
    State state = save();
    double rate = recipe_.rate;
    if (round >= recipe_.halve_from)
      rate /= std::exp2(1 + (round - recipe_.halve_from) / recipe_.halve_every);
    state.add_scalar("learning_rate", static_cast<float>(rate));
    state.add_scalar<uint32_t>("round", round);
    return state;
  }

  void accept(uint32_t client, const State& upload) override {
    const auto samples = upload.scalar<uint32_t>("samples");
    if (samples == 0)
      throw input_error("{}: tensor 'samples': found 0, expected at least 1", upload.source());
    NetworkParameters parameters = method_.read_upload
                                       ? method_.read_upload(network_.parameters(), global_, upload)
                                       : read_plain_upload(method_, network_.parameters(), global_, upload);
    for (const std::vector<float>& numbers : parameters) {
      if (!ExactMean::fits(numbers))
        throw input_error("{}: found a parameter beyond ±{}", upload.source(), ExactMean::kLargest);
    }
    mean_.add(client, std::move(parameters), samples, global_);
  }

  void finish_round(uint32_t /*round*/) override {
    if (mean_.clients() == 0) return;  // nobody answered
    global_ = mean_.take();
    if (method_.settle) method_.settle(&global_);
  }

  std::unique_ptr<Model> model() const override { return method_.deploy(global_); }

  State save() const override {
    State state;
    add_parameters(network_.parameters(), global_, &state);
    return state;
  }

  void restore(const State& saved) override { global_ = read_parameters(network_.parameters(), saved); }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = mean_.notes();
    notes.insert(notes.begin(), method_.notes.begin(), method_.notes.end());
    return notes;
  }

 private:
  NetworkMethod method_;
  Recipe recipe_;
  mutable Network network_;  // for the names and shapes of its parameters, which it hands out to be changed
  NetworkParameters global_;
  ClientMean mean_;
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

bool is_product_weights(const Parameter& parameter) {
  return parameter.name.ends_with(".weights");
}

void start_small(const RandomStream& random, Network* network) {
  for (size_t p = 0; p < network->parameters().size(); ++p) {
    Parameter& parameter = *network->parameters()[p];
    if (!is_product_weights(parameter)) continue;
    RandomStream draws = random.substream(p);
    std::vector<float> numbers(parameter.count());
    for (float& number : numbers) number = static_cast<float>(0.01 * draws.normal());
    parameter.assign(numbers);
  }
}

NetworkMethod real_network_method(const MethodContext& context) {
  NetworkMethod method;
  method.spec = read_network(context.recipe, context.prototype, false);
  method.make = [spec = method.spec](size_t batch, const RandomStream& random) {
    return make_network(spec, batch, random);
  };
  method.deploy = [spec = method.spec](const NetworkParameters& parameters) {
    return std::make_unique<NetworkModel>(spec, parameters);
  };
  return method;
}

std::unique_ptr<Method> make_network_method(const MethodContext& context, NetworkMethod method) {
  const Recipe recipe = read_recipe(context, method.learning_rate);
  return std::make_unique<AveragedNetworks>(std::move(method), recipe);
}

}  // namespace bitfed
