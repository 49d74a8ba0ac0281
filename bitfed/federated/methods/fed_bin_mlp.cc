// Fed-Bin-MLP (Oh et al., "A federated binarized neural network model for constrained devices in IoT
// healthcare services", 2022): every gateway trains a small perceptron for an epoch, the server averages, and
// every gateway keeps a personal model, a blend of the average and its previous model. Also FedAvg of
// perceptrons, which is the same without personal models.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/federated/arithmetic/client_mean.h"
#include "bitfed/federated/expect_tensors.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/mlp/column_ranges.h"
#include "bitfed/federated/mlp/mlp_messages.h"
#include "bitfed/federated/privacy/privacy_recipe.h"
#include "bitfed/nn/mlp/mlp_trainer.h"
#include "bitfed/zoo/mlp_model.h"
#include "bitfed/zoo/mlp_zoo.h"

namespace bitfed {
namespace {

// The parameters from which a client starts a round.
enum class Mix {
  // (global + lambda * own) / (1 + lambda): equation (3) of the paper, normalised. Signs and layers followed
  // by batch norm are invariant to the division, but latent weights stay small enough for training to flip
  // them.
  kBlend,
  // global + lambda * own, literally. All parameters, batch norm's shifts included, grow by a factor of 1 +
  // lambda per round, until every unit has the same output for every sample.
  kEquation3,
  kFigure4,  // a new network + lambda * global, as in the paper's listing
  kGlobal,   // global: FedAvg. There are no personal models
};

struct Recipe {
  MlpShape shape;
  Mix mix = Mix::kBlend;
  float lambda = 0.2f;
  RangeKind ranges = RangeKind::kQuantiles;
  std::vector<double> lower, upper;  // of each column; only where they are declared
  MlpPrecision upload = MlpPrecision::kFloats;
  uint32_t epochs = 1;
  uint32_t batch = 32;
  AdamOptions adam;
  MlpOptimizer optimizer = MlpOptimizer::kAdam;
  Combining combining;
  std::optional<float> vote_size;  // see Server::vote_size
  uint64_t seed = 0;
};

// Read only where it is given: earlier runs were recorded without it.
void read_vote_size(const Config& method, const PrivacyRecipe& privacy, Recipe* recipe) {
  if (recipe->upload != MlpPrecision::kSigns) return;
  if (method.has("vote_size")) {
    recipe->vote_size = static_cast<float>(method.number("vote_size", 1, 1e-9, 1));
  } else if (privacy.equal_weights) {
    throw input_error("{}: found none, expected one: with equal weights the server does not know the samples",
                      method.where("vote_size"));
  }
}

void read_scaling_kind(const Config& method, const Dataset& prototype, Recipe* recipe) {
  const std::vector<std::string> kinds = {"extremes", "quantiles", "declared"};  // in the order of RangeKind
  const std::string kind = method.choice("scaling", kinds[1], kinds);
  recipe->ranges = static_cast<RangeKind>(std::find(kinds.begin(), kinds.end(), kind) - kinds.begin());
  if (recipe->ranges != RangeKind::kDeclared) return;
  recipe->lower = method.numbers("lower", {}, -1e9, 1e9);
  recipe->upper = method.numbers("upper", {}, -1e9, 1e9);
  const size_t columns = prototype.columns.size();
  for (const auto& [key, ends] : {std::pair{"lower", &recipe->lower}, std::pair{"upper", &recipe->upper}}) {
    if (ends->size() != columns) {
      throw input_error("{}: found {} numbers, expected one for each of the {} columns", method.where(key),
                        ends->size(), columns);
    }
  }
  for (size_t c = 0; c < columns; ++c) {
    if (recipe->lower[c] < recipe->upper[c]) continue;
    throw input_error("{}: found {} in place {}, expected more than {} in lower", method.where("upper"),
                      recipe->upper[c], c + 1, recipe->lower[c]);
  }
}

// What both methods read, but for the optimizer.
Recipe read_shared(const MethodContext& context, bool binary) {
  Recipe recipe;
  recipe.shape = read_mlp(context.recipe, context.prototype, binary);
  recipe.seed = context.seed;
  const Config method = context.recipe.section("method");
  read_scaling_kind(method, context.prototype, &recipe);
  if (recipe.ranges == RangeKind::kExtremes && read_privacy(context.recipe, context.clients).grid) {
    throw input_error(
        "{}: found 'extremes' together with [privacy], expected 'quantiles': a sum has no smallest and largest",
        method.where("scaling"));
  }
  const Config client = context.recipe.section("client");
  recipe.epochs = static_cast<uint32_t>(client.integer("epochs", 1, 1, 100000));
  recipe.batch = static_cast<uint32_t>(client.integer("batch", 32, 1, 65536));
  recipe.combining = read_combining(context.recipe);
  return recipe;
}

double read_rate(const MethodContext& context, double usual) {
  return context.recipe.section("client").number("learning_rate", usual, 1e-9, 10);
}

Recipe read_fedavg(const MethodContext& context) {
  Recipe recipe = read_shared(context, false);
  recipe.mix = Mix::kGlobal;
  const Config client = context.recipe.section("client");
  const std::vector<std::string> optimizers = {"adam", "sgd"};  // in the order of MlpOptimizer
  if (client.choice("optimizer", optimizers[0], optimizers) == optimizers[1])
    recipe.optimizer = MlpOptimizer::kDescent;
  if (recipe.optimizer == MlpOptimizer::kDescent && recipe.shape.binary) {
    throw input_error("{}: found 'sgd', expected 'adam' for a binary perceptron", client.where("optimizer"));
  }
  recipe.adam.rate = read_rate(context, recipe.optimizer == MlpOptimizer::kAdam ? 1e-3 : 0.1);
  return recipe;
}

Recipe read_recipe(const MethodContext& context) {
  Recipe recipe = read_shared(context, true);
  recipe.adam.rate = read_rate(context, 1e-3);
  const Config method = context.recipe.section("method");
  const std::vector<std::string> mixes = {"blend", "equation3", "figure4"};  // in the order of Mix
  const std::string mix = method.choice("mix", mixes[0], mixes);
  recipe.mix = static_cast<Mix>(std::find(mixes.begin(), mixes.end(), mix) - mixes.begin());
  recipe.lambda = static_cast<float>(method.number("lambda", 0.2, 0, 1));
  const std::vector<std::string> uploads = {"latent", "bits"};
  if (method.choice("upload", uploads[0], uploads) == uploads[1]) recipe.upload = MlpPrecision::kSigns;
  if (recipe.upload == MlpPrecision::kSigns && !recipe.shape.binary) {
    throw input_error("{}: found 'bits', expected 'latent': real-valued weights cannot be sent as signs",
                      method.where("upload"));
  }
  const PrivacyRecipe privacy = read_privacy(context.recipe, context.clients);
  if (recipe.upload == MlpPrecision::kSigns && recipe.combining.norm_bound > 0) {
    throw input_error(
        "{}: found together with method.upload = \"bits\", expected none: an update of signs has no norm",
        context.recipe.section("federation").where("norm_bound"));
  }
  read_vote_size(method, privacy, &recipe);
  return recipe;
}

// (a + factor * b) / divisor for all parameters; variances stay nonnegative.
MlpParameters sum(const MlpParameters& a, float factor, const MlpParameters& b, float divisor = 1) {
  MlpParameters result = a;
  const auto add = [&](std::vector<float>* to, const std::vector<float>& from) {
    for (size_t i = 0; i < to->size(); ++i) (*to)[i] = ((*to)[i] + factor * from[i]) / divisor;
  };
  add(&result.weights, b.weights);
  add(&result.shifts, b.shifts);
  add(&result.means, b.means);
  add(&result.variances, b.variances);
  return result;
}

TensorValues values_of(const MlpParameters& parameters) {
  return {parameters.weights, parameters.shifts, parameters.means, parameters.variances};
}

// What the clients of a round add to a sum: votes or changes of the weights, changes of the rest.
SumParts sum_parts_of(const Recipe& recipe) {
  const bool votes = recipe.upload == MlpPrecision::kSigns;
  return {{votes ? SumKind::kVote : SumKind::kChange, recipe.shape.weights()},
          {SumKind::kChange, recipe.shape.units()},        // shifts
          {SumKind::kPrecise, 2 * recipe.shape.units()}};  // means and variances
}

class Client : public ClientHalf {
 public:
  explicit Client(Recipe recipe) : recipe_(std::move(recipe)) {}

  ClientUpdate update_of(const State& broadcast, const State& upload) const override {
    if (asks_for_ranges(broadcast)) return ranges_update(upload, recipe_.shape.widths.front());
    const TensorValues before = values_of(read_parameters(broadcast, recipe_.shape));
    const TensorValues after = values_of(read_parameters(upload, recipe_.shape));
    ClientUpdate update{sum_parts_of(recipe_), {}, upload.scalar<uint32_t>("samples")};
    for (size_t t = 0; t < after.size(); ++t) {
      const bool votes = t == 0 && recipe_.upload == MlpPrecision::kSigns;
      for (size_t i = 0; i < after[t].size(); ++i)
        update.values.push_back(after[t][i] - (votes ? 0.0 : static_cast<double>(before[t][i])));
    }
    return update;
  }

  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    if (asks_for_ranges(broadcast)) return ranges_message(broadcast, samples);
    const ColumnScaling scaling = read_scaling(broadcast, recipe_.shape.widths.front());
    MlpTrainer trainer(recipe_.shape, std::min<size_t>(recipe_.batch, samples.size()), recipe_.adam,
                       recipe_.optimizer);
    trainer.load(start(read_parameters(broadcast, recipe_.shape), context));
    train_epochs(scaling, samples, context, &trainer);
    const MlpParameters own = trainer.parameters();
    for (const std::vector<float>& values : values_of(own)) {
      if (!ExactMean::fits(values)) throw diverged();
    }

    // What the client keeps for the next round is also its personal model.
    if (recipe_.mix != Mix::kGlobal) {
      State kept;
      add_scaling(scaling, &kept);
      add_parameters(own, MlpPrecision::kFloats, &kept);
      context.keep(std::move(kept));
    }

    State upload;
    upload.add_scalar<uint32_t>("samples", static_cast<uint32_t>(samples.size()));
    add_parameters(own, recipe_.upload, &upload);
    return upload;
  }

  std::unique_ptr<Model> personal_model(const State& kept) const override {
    if (recipe_.mix == Mix::kGlobal) return nullptr;
    return std::make_unique<MlpModel>(recipe_.shape, read_scaling(kept, recipe_.shape.widths.front()),
                                      read_parameters(kept, recipe_.shape));
  }

 private:
  // In a client's first round there is no personal model to blend in.
  MlpParameters start(const MlpParameters& global, const ClientContext& context) const {
    if (recipe_.mix == Mix::kFigure4)
      return sum(initial_parameters(recipe_.shape, context.random.substream(1)), recipe_.lambda, global);
    if (context.kept.empty() || recipe_.mix == Mix::kGlobal) return global;
    const float divisor = recipe_.mix == Mix::kBlend ? 1 + recipe_.lambda : 1;
    return sum(global, recipe_.lambda, read_parameters(context.kept, recipe_.shape), divisor);
  }

  void train_epochs(const ColumnScaling& scaling, const Dataset& samples, const ClientContext& context,
                    MlpTrainer* trainer) const {
    std::vector<uint32_t> order(samples.size());
    std::iota(order.begin(), order.end(), 0u);
    RandomStream random = context.random.substream(0);
    std::vector<uint16_t> labels;
    for (uint32_t epoch = 0; epoch < recipe_.epochs; ++epoch) {
      random.shuffle(std::span(order));
      for (size_t first = 0; first < order.size(); first += recipe_.batch) {
        if (first % (1024 * recipe_.batch) == 0) {  // not in every batch: these are short
          if (context.stop && context.stop()) throw Error(Error::Kind::kStopped, "stopped");
          context.progress((epoch + static_cast<double>(first) / static_cast<double>(order.size())) /
                           recipe_.epochs);
        }
        const size_t rows = std::min<size_t>(recipe_.batch, order.size() - first);
        labels.resize(rows);
        for (size_t r = 0; r < rows; ++r) {
          scaling.apply(samples.row(order[first + r]), trainer->input(r));
          labels[r] = samples.labels[order[first + r]];
        }
        if (!std::isfinite(trainer->step(labels))) throw diverged();
      }
      context.trained(samples.size());
    }
  }

  Error diverged() const {
    if (recipe_.mix == Mix::kEquation3) {
      return failure(
          "training diverged, parameters are no longer finite: method.mix = \"equation3\" makes them grow "
          "every round, \"blend\" does not");
    }
    return failure("training diverged, parameters are no longer finite: lower client.learning_rate (now {})",
                   recipe_.adam.rate);
  }

  Recipe recipe_;
};

class Server : public ServerHalf {
 public:
  explicit Server(Recipe recipe)
      : recipe_(std::move(recipe)),
        ranges_(recipe_.ranges, recipe_.shape.widths.front(), recipe_.combining),
        global_(initial_parameters(recipe_.shape, RandomStream({recipe_.seed, "mlp"}))),
        mean_(recipe_.combining, {true, true, false, false}) {
    if (recipe_.ranges != RangeKind::kDeclared) return;
    ranges_.declare(recipe_.lower, recipe_.upper);
    scaling_ = ranges_.scaling();
  }

  bool needs_preparation() const override { return scaling_.factor.empty(); }

  State broadcast(uint32_t /*round*/) const override {
    return needs_preparation() ? ask_for_ranges(recipe_.ranges) : save();
  }

  void accept(uint32_t client, const State& message) override {
    if (needs_preparation()) {
      ranges_.accept(client, message);
      return;
    }
    const auto samples = message.scalar<uint32_t>("samples");
    if (samples == 0) throw input_error("tensor 'samples': found 0, expected at least 1");
    const MlpParameters parameters = read_parameters(message, recipe_.shape);
    expect_tensors(message, 3);  // samples, weights or signs, norms
    mean_.add(client, values_of(parameters), samples, values_of(global_));
  }

  std::optional<SumParts> sum_parts() const override {
    return needs_preparation() ? ColumnRanges::sum_parts(recipe_.shape.widths.front())
                               : sum_parts_of(recipe_);
  }

  void accept_mean(const UpdateMean& mean) override {
    if (needs_preparation()) {
      ranges_.accept_mean(mean);
      return;
    }
    const bool votes = recipe_.upload == MlpPrecision::kSigns;
    TensorValues values = values_of(global_);
    const double* next = mean.values.data();
    for (size_t t = 0; t < values.size(); ++t) {
      for (float& value : values[t]) value = static_cast<float>((t == 0 && votes ? 0 : value) + *next++);
    }
    for (size_t i = 0; i < values[3].size(); ++i)
      values[3][i] = mean.variance(values[3][i], global_.variances[i]);
    mean_.set(std::move(values), mean.weight, mean.clients);
  }

  void finish_round(uint32_t /*round*/) override {
    if (needs_preparation()) {
      scaling_ = ranges_.scaling();
      return;
    }
    const float size = recipe_.upload == MlpPrecision::kSigns ? vote_size() : 1;
    TensorValues mean = mean_.take();
    for (float& weight : mean[0]) weight *= size;
    global_ = {std::move(mean[0]), std::move(mean[1]), std::move(mean[2]), std::move(mean[3])};
  }

  bool adds_up() const override { return mean_.adds_up(); }
  State take_part() override { return mean_.take_part(); }
  void accept_part(const State& part) override { mean_.add_part(part, values_of(global_)); }

  std::unique_ptr<Model> model() const override {
    return std::make_unique<MlpModel>(recipe_.shape, scaling_, global_);
  }

  State save() const override {
    State state;
    if (!needs_preparation()) add_scaling(scaling_, &state);
    add_parameters(global_, MlpPrecision::kFloats, &state);
    return state;
  }

  std::vector<std::string> notes() const override { return mean_.notes(); }

  void restore(const State& saved) override {
    if (saved.has("scaling")) scaling_ = read_scaling(saved, recipe_.shape.widths.front());
    global_ = read_parameters(saved, recipe_.shape);
  }

 private:
  // The magnitude of a latent weight on whose sign all clients agreed. Adam moves a weight by about its
  // learning rate per step: at half of what a round's steps can do, a client's data can still flip the sign,
  // and noise hardly can. At 1 the signs would never change after the first round.
  float vote_size() const {
    if (recipe_.vote_size) return *recipe_.vote_size;
    const double samples = static_cast<double>(mean_.samples()) / static_cast<double>(mean_.clients());
    const double steps = recipe_.epochs * std::ceil(samples / recipe_.batch);
    return static_cast<float>(std::min(1.0, 0.5 * recipe_.adam.rate * steps));
  }

  Recipe recipe_;
  ColumnRanges ranges_;
  ColumnScaling scaling_;
  MlpParameters global_;
  ClientMean mean_;
};

class FedBinMlp : public Method {
 public:
  explicit FedBinMlp(Recipe recipe) : recipe_(std::move(recipe)) {}

  std::unique_ptr<ClientHalf> make_client() const override { return std::make_unique<Client>(recipe_); }
  std::unique_ptr<ServerHalf> make_server() const override { return std::make_unique<Server>(recipe_); }
  std::string client_key() const override {
    if (recipe_.mix == Mix::kGlobal) return "fedavg of perceptrons";
    return fmt::format("fed-bin-mlp mix={} lambda={} signs={}", static_cast<int>(recipe_.mix), recipe_.lambda,
                       recipe_.upload == MlpPrecision::kSigns);
  }
  uint32_t default_rounds() const override { return 100; }

 private:
  Recipe recipe_;
};

}  // namespace

std::unique_ptr<ClientHalf> make_perceptron_client(const MethodContext& context) {
  return std::make_unique<Client>(read_fedavg(context));
}

std::unique_ptr<Method> make_perceptrons(const MethodContext& context) {
  return std::make_unique<FedBinMlp>(read_fedavg(context));
}

std::unique_ptr<ClientHalf> make_fed_bin_mlp_client(const MethodContext& context) {
  return std::make_unique<Client>(read_recipe(context));
}

std::unique_ptr<Method> make_fed_bin_mlp(const MethodContext& context) {
  return std::make_unique<FedBinMlp>(read_recipe(context));
}

}  // namespace bitfed
