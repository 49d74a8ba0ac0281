#include "bitfed/federated/network/network_method.h"
#include "bitfed/zoo/network/network_recipe.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/base/pool_or_caller.h"
#include "bitfed/data/augmentation.h"
#include "bitfed/federated/arithmetic/client_mean.h"
#include "bitfed/federated/expect_tensors.h"
#include "bitfed/federated/network/rate_schedule.h"
#include "bitfed/federated/privacy/privacy_recipe.h"

namespace bitfed {
namespace {

constexpr uint32_t kDefaultRounds = 500;

struct Recipe {
  LocalWork work;
  double rate = 0.1;
  bool adam = false;
  double momentum = 0;
  double decay = 0;  // of convolutions' weights
  RateSchedule schedule;
  Augmentation augmentation = Augmentation::kNone;
  Combining combining;
  uint32_t rounds = kDefaultRounds;
  uint64_t seed = 0;
  double ema = 0;       // the part of the earlier rounds in the model; 0: the last round's alone
  bool summed = false;  // updates are summed before the server half sees them
};

// Read only where they are given: earlier runs were recorded without them. To a method with a descent of its
// own they are unknown keys.
void read_optimizer(const Config& client, const NetworkTraining& training, Recipe* recipe) {
  if (training.plain_steps) return;
  const std::vector<std::string> optimizers = {"sgd", "adam"};
  recipe->adam =
      client.has("optimizer") && client.choice("optimizer", optimizers[0], optimizers) == optimizers[1];
  if (recipe->adam) return;
  if (client.has("momentum")) recipe->momentum = client.number("momentum", 0, 0, 0.9999);
  if (client.has("weight_decay")) recipe->decay = client.number("weight_decay", 0, 0, 1);
}

Recipe read_recipe(const MethodContext& context, const NetworkTraining& training) {
  Recipe recipe;
  recipe.seed = context.seed;
  recipe.rounds = static_cast<uint32_t>(context.recipe.integer("rounds", kDefaultRounds, 1));
  const Config client = context.recipe.section("client");
  recipe.work = read_local_work(context.recipe);
  read_optimizer(client, training, &recipe);
  const double rate = recipe.adam ? AdamOptions().rate : training.learning_rate;
  recipe.rate = client.number("learning_rate", rate, 1e-9, 1000);
  recipe.schedule = read_rate_schedule(client, recipe.rounds);
  const std::vector<std::string> augmentations = {"none", "crop-flip"};
  if (client.choice("augment", "none", augmentations) == "crop-flip")
    recipe.augmentation = Augmentation::kCropFlip;
  recipe.combining = read_combining(context.recipe);
  const Config federation = context.recipe.section("federation");
  if (federation.has("ema")) recipe.ema = federation.number("ema", 0, 0, 0.9999);
  recipe.summed = read_privacy(context.recipe, context.clients).grid.has_value();
  return recipe;
}

// A client's parameters after a round: as they lie in its upload, or in `own`.
struct Uploaded {
  NetworkParameters own;
  TensorViews values;
};

Uploaded read_upload(const NetworkTraining& method, const ParameterShapes& shapes,
                     const NetworkParameters& broadcast, const State& upload, ThreadPool* pool = nullptr) {
  Uploaded uploaded;
  if (method.read_upload) {
    uploaded.own = method.read_upload(shapes, broadcast, upload);
    uploaded.values.assign(uploaded.own.begin(), uploaded.own.end());
    return uploaded;
  }
  uploaded.values.resize(shapes.size());
  std::vector<uint8_t> sent(shapes.size());
  for_each(pool, shapes.size(), [&](size_t p) {
    sent[p] = !method.sends || method.sends(shapes[p]) ? 1 : 0;
    uploaded.values[p] = sent[p] != 0 ? view_parameter(shapes[p], upload) : broadcast[p];
  });
  expect_tensors(upload, 1 + std::accumulate(sent.begin(), sent.end(), size_t{0}));  // with samples
  return uploaded;
}

// What the clients of a round add to a sum: the change of every parameter that they send.
SumParts sum_parts_of(const NetworkTraining& method, const ParameterShapes& shapes) {
  SumParts parts;
  for (const ParameterShape& shape : shapes) {
    if (method.sends && !method.sends(shape)) continue;
    parts.push_back({shape.statistic ? SumKind::kPrecise : SumKind::kChange, shape.count()});
  }
  return parts;
}

Error diverged(float rate) {
  return failure("training diverged, its numbers are no longer finite: lower client.learning_rate (now {})",
                 rate);
}

// What a broadcast says beside the parameters.
struct Announcement {
  const State& broadcast;
  uint32_t round = 0;
  float rate = 0;
};

Announcement read_announcement(const State& broadcast, uint32_t rounds) {
  const Announcement announced{broadcast, broadcast.scalar<uint32_t>("round"),
                               broadcast.scalar<float>("learning_rate")};
  if (!(announced.rate > 0))
    throw input_error("tensor 'learning_rate': found {}, expected a number above 0", announced.rate);
  if (announced.round < 1 || announced.round > rounds)
    throw input_error("tensor 'round': found {}, expected 1 to {}", announced.round, rounds);
  return announced;
}

// One client of a cohort at work: its order of samples, where it is in them, and its training.
class ClientAtWork {
 public:
  ClientAtWork(const NetworkTraining& training, const Recipe& recipe, const Announcement& announced,
               const CohortClient& client, Trainer* trainer, size_t index)
      : recipe_(recipe),
        announced_(announced),
        samples_(client.samples),
        context_(client.context),
        trainer_(*trainer),
        index_(index),
        shuffling_(context_.random.substream(0)),
        moving_(context_.random.substream(1)),
        order_(samples_.size()),
        is_plain_(!training.train) {
    std::iota(order_.begin(), order_.end(), 0u);
    trainer_.begin_round(index, context_.random.substream(3));
    const LocalContext local{.trainer = trainer,
                             .client = index,
                             .steps = recipe.work.steps(samples_.size()),
                             .round = announced.round,
                             .rate = announced.rate,
                             .random = context_.random.substream(2),
                             .broadcast = &announced.broadcast,
                             .own = &context_};
    training_ =
        training.train ? training.train(local) : std::make_unique<PlainDescent>(local, training.sends);
  }

  bool is_done() const { return epoch_ == recipe_.work.epochs; }
  uint32_t epoch() const { return epoch_; }
  std::span<const uint16_t> labels() const { return labels_; }

  void load_batch() {
    if (context_.stop && context_.stop()) throw Error(Error::Kind::kStopped, "stopped");
    if (first_ == 0) begin_epoch();
    labels_.resize(std::min<size_t>(recipe_.work.batch, order_.size() - first_));
    for (size_t i = 0; i < labels_.size(); ++i) {
      const uint32_t sample = order_[first_ + i];
      trainer_.load(index_, i, pixels_of(sample));
      labels_[i] = samples_.labels[sample];
    }
    training_->before_step();
    if (is_plain_) trainer_.announce(index_, descent());
  }

  void step() {
    training_->descend(descent());
    first_ += labels_.size();
    labels_.clear();
    if (first_ < order_.size()) return;
    if (trainer_.diverged(index_)) throw diverged(announced_.rate);
    first_ = 0;
    ++epoch_;
    context_.trained(samples_.size());
    context_.progress(static_cast<double>(epoch_) / recipe_.work.epochs);
  }

  // From the parameters after the round.
  State upload(const NetworkParameters& parameters) {
    for (const std::vector<float>& values : parameters) {
      if (!ExactMean::fits(values)) throw diverged(announced_.rate);
    }
    State upload = training_->upload(parameters);
    upload.add_scalar<uint32_t>("samples", static_cast<uint32_t>(samples_.size()));
    return upload;
  }

 private:
  Descent descent() const {
    return {.rate = announced_.rate,
            .momentum = static_cast<float>(recipe_.momentum),
            .decay = static_cast<float>(recipe_.decay),
            .adam = recipe_.adam};
  }

  void begin_epoch() {
    const double epochs = announced_.round - 1 + static_cast<double>(epoch_) / recipe_.work.epochs;
    trainer_.begin_epoch(index_, epochs / recipe_.rounds);
    shuffling_.shuffle(std::span(order_));
  }

  std::span<const uint8_t> pixels_of(uint32_t sample) {
    const std::span<const uint8_t> pixels = samples_.image(sample);
    if (recipe_.augmentation == Augmentation::kNone) return pixels;
    moved_.resize(pixels.size());
    move_image(samples_, pixels, ImageMove::draw(&moving_), moved_);
    return moved_;
  }

  const Recipe& recipe_;
  Announcement announced_;
  const Dataset& samples_;
  const ClientContext& context_;
  Trainer& trainer_;
  size_t index_;
  RandomStream shuffling_, moving_;
  std::vector<uint32_t> order_;
  bool is_plain_;  // steps are PlainDescent's
  std::unique_ptr<LocalTraining> training_;
  uint32_t epoch_ = 0;
  size_t first_ = 0;  // of the epoch, the samples trained on
  std::vector<uint16_t> labels_;
  std::vector<uint8_t> moved_;
};

// Trainers that wait for the next client: with small clients, making one would take as long as the training.
class IdleTrainers {
 public:
  struct Entry {
    size_t batch = 0;
    std::unique_ptr<Trainer> trainer;
  };

  // One for batches of this size; empty: there is none. One of another size makes way for the one that the
  // caller is about to make.
  std::unique_ptr<Trainer> take(size_t batch) {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return nullptr;
    const auto fits = [&](const Entry& entry) { return entry.batch == batch; };
    const auto found = std::find_if(idle_.begin(), idle_.end(), fits);
    std::swap(found == idle_.end() ? idle_.front() : *found, idle_.back());
    Entry entry = std::move(idle_.back());
    idle_.pop_back();
    return entry.batch == batch ? std::move(entry.trainer) : nullptr;
  }
  void put(Entry entry) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(entry));
  }

 private:
  std::mutex mutex_;
  std::vector<Entry> idle_;
};

// Clients of a cohort train in lockstep, each with its own batches; one that has done its epoch, or failed,
// waits.
class Client : public ClientHalf {
 public:
  Client(NetworkTraining training, const Recipe& recipe, Trainers trainers)
      : training_(std::move(training)), recipe_(recipe), trainers_(std::move(trainers)) {
    if (!recipe.summed) return;
    Network network = make_trained_network(training_.network, 1, RandomStream({.purpose = "replaced"}));
    shapes_ = shapes_of(network);
  }

  ClientUpdate update_of(const State& broadcast, const State& upload) const override {
    const NetworkParameters before = read_parameters(shapes_, broadcast);
    const Uploaded after = read_upload(training_, shapes_, before, upload);
    ClientUpdate update{sum_parts_of(training_, shapes_), {}, upload.scalar<uint32_t>("samples")};
    for (size_t p = 0; p < shapes_.size(); ++p) {
      if (training_.sends && !training_.sends(shapes_[p])) continue;
      for (size_t i = 0; i < before[p].size(); ++i)
        update.values.push_back(static_cast<double>(after.values[p][i]) - before[p][i]);
    }
    return update;
  }

  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    const CohortClient client{samples, context};
    CohortUpload result = std::move(train_cohort(broadcast, {&client, 1}, nullptr)[0]);
    if (result.error) std::rethrow_exception(result.error);
    return std::move(result.upload);
  }

  size_t cohort() const override { return trainers_.cohort; }

  std::vector<CohortUpload> train_cohort(const State& broadcast, std::span<const CohortClient> clients,
                                         ThreadPool* pool) const override {
    const Announcement announced = read_announcement(broadcast, recipe_.rounds);
    const size_t batch = batch_of(clients);
    // A device's memory may hold no second trainer.
    std::unique_ptr<Trainer> trainer = cohort() == 1 ? idle_.take(batch) : nullptr;
    try {
      if (!trainer) trainer = trainers_.make(training_.network, clients.size(), batch);
    } catch (const TrainerTooLarge&) {
      if (clients.size() == 1) throw;
      // A cohort of half the size, and then the other half.
      const size_t half = clients.size() / 2;
      std::vector<CohortUpload> uploads = train_cohort(broadcast, clients.first(half), pool);
      for (CohortUpload& upload : train_cohort(broadcast, clients.subspan(half), pool))
        uploads.push_back(std::move(upload));
      return uploads;
    }
    trainer->set_parameters(read_parameters(trainer->shapes(), broadcast));
    std::vector<CohortUpload> results(clients.size());
    std::vector<std::unique_ptr<ClientAtWork>> at_work(clients.size());
    const auto guarded = [&](size_t i, const auto& work) {
      if (results[i].error) return;
      try {
        work(i);
      } catch (...) {
        results[i].error = std::current_exception();
        at_work[i].reset();
      }
    };
    for (size_t i = 0; i < clients.size(); ++i) {
      guarded(i, [&](size_t client) {
        at_work[client] = std::make_unique<ClientAtWork>(training_, recipe_, announced, clients[client],
                                                         trainer.get(), client);
      });
    }
    // Epochs begin together, so that a device does for all clients at once what an epoch begins with. A
    // client with fewer batches waits; the round takes as many steps as its largest client all the same.
    uint32_t epoch = 0;
    const auto takes_part = [&](size_t i) { return at_work[i] != nullptr && at_work[i]->epoch() == epoch; };
    std::vector<std::span<const uint16_t>> labels(clients.size());
    // A method whose clients change the parameters themselves works longer at that than a device at a step.
    ThreadPool* const threads = training_.train ? pool : nullptr;
    while (epoch < recipe_.work.epochs) {
      size_t busy = 0;
      for_each(threads, clients.size(), [&](size_t i) {
        if (takes_part(i)) guarded(i, [&](size_t client) { at_work[client]->load_batch(); });
      });
      for (size_t i = 0; i < clients.size(); ++i) {
        labels[i] = takes_part(i) ? at_work[i]->labels() : std::span<const uint16_t>();
        busy += takes_part(i) ? 1 : 0;
      }
      if (busy == 0) {
        ++epoch;
        continue;
      }
      trainer->differentiate(labels);
      for_each(threads, clients.size(), [&](size_t i) {
        if (takes_part(i)) guarded(i, [&](size_t client) { at_work[client]->step(); });
      });
    }
    // The trainer ends one client's round at a time; the rest is each client's own.
    for (size_t i = 0; i < clients.size(); ++i)
      guarded(i, [&](size_t client) { trainer->end_round(client); });
    std::vector<NetworkParameters> trained(clients.size());
    for_each(pool, clients.size(), [&](size_t i) {
      guarded(i, [&](size_t client) { trained[client] = trainer->parameters(client); });
    });
    for (size_t i = 0; i < clients.size(); ++i) {
      guarded(i, [&](size_t client) {
        if (trainer->diverged(client)) throw diverged(announced.rate);
      });
    }
    for_each(pool, clients.size(), [&](size_t i) {
      const NetworkParameters own = std::move(trained[i]);
      guarded(i, [&](size_t client) { results[client].upload = at_work[client]->upload(own); });
    });
    at_work.clear();
    if (cohort() == 1) idle_.put({batch, std::move(trainer)});
    return results;
  }

 private:
  size_t batch_of(std::span<const CohortClient> clients) const {
    size_t largest = 0;
    for (const CohortClient& client : clients) largest = std::max(largest, client.samples.size());
    return std::min<size_t>(recipe_.work.batch, largest);
  }

  NetworkTraining training_;
  Recipe recipe_;
  Trainers trainers_;
  ParameterShapes shapes_;  // only where updates are summed
  mutable IdleTrainers idle_;
};

Trainers trainers_of(const MethodContext& context) {
  return context.trainers != nullptr ? *context.trainers : Trainers();
}

// Of each parameter, whether it is learned.
std::vector<bool> learned(const ParameterShapes& shapes) {
  std::vector<bool> result;
  for (const ParameterShape& shape : shapes) result.push_back(!shape.statistic);
  return result;
}

class Server : public ServerHalf {
 public:
  Server(const NetworkMethod& method, const Recipe& recipe)
      : Server(method, recipe, RandomStream({recipe.seed, "network"})) {}

  State broadcast(uint32_t round) const override {
    State state;
    add_parameters(shapes_, global_, &state);
    state.add_scalar("learning_rate", static_cast<float>(recipe_.rate * recipe_.schedule.factor(round)));
    state.add_scalar<uint32_t>("round", round);
    return state;
  }

  void use(ThreadPool& pool) override {
    pool_ = &pool;
    mean_.use(&pool);
  }

  void accept(uint32_t client, const State& upload) override {
    const auto samples = upload.scalar<uint32_t>("samples");
    if (samples == 0)
      throw input_error("{}: tensor 'samples': found 0, expected at least 1", upload.source());
    const Uploaded uploaded = read_upload(method_, shapes_, global_, upload, pool_);
    for_each(pool_, uploaded.values.size(), [&](size_t p) {
      if (!ExactMean::fits(uploaded.values[p]))
        throw input_error("{}: found a parameter beyond ±{}", upload.source(), ExactMean::kLargest);
    });
    mean_.add_views(client, uploaded.values, samples, global_);
  }

  std::optional<SumParts> sum_parts() const override { return sum_parts_of(method_, shapes_); }

  void accept_mean(const UpdateMean& mean) override {
    NetworkParameters parameters = global_;
    const double* change = mean.values.data();
    for (size_t p = 0; p < shapes_.size(); ++p) {
      if (method_.sends && !method_.sends(shapes_[p])) continue;
      const bool variance = shapes_[p].name.ends_with(".variance");
      for (float& value : parameters[p]) {
        const auto changed = static_cast<float>(value + *change++);
        value = variance ? mean.variance(changed, value) : changed;
      }
    }
    mean_.set(std::move(parameters), mean.weight, mean.clients);
  }

  void finish_round(uint32_t /*round*/) override {
    if (mean_.clients() == 0) return;  // nobody answered
    global_ = mean_.take();
    if (method_.settle) method_.settle(&global_);
    if (recipe_.ema > 0) update_ema();
  }

  bool adds_up() const override { return mean_.adds_up(); }
  State take_part() override { return mean_.take_part(); }
  void accept_part(const State& part) override { mean_.add_part(part, global_); }

  std::unique_ptr<Model> model() const override { return model_later()(); }
  // Making the bits of a large network takes longer than a copy of its parameters.
  std::function<std::unique_ptr<Model>()> model_later() const override {
    return [deploy = method_.deploy, settle = ema_.empty() ? nullptr : method_.settle,
            parameters = ema_.empty() ? global_ : ema_]() mutable {
      if (settle) settle(&parameters);
      return deploy(parameters);
    };
  }

  State save() const override {
    State state;
    add_parameters(shapes_, global_, &state);
    if (!ema_.empty()) add_parameters(ema_shapes(), ema_, &state);
    return state;
  }

  // Also from a broadcast, which has no moving average.
  void restore(const State& saved) override {
    global_ = read_parameters(shapes_, saved);
    ema_.clear();
    if (recipe_.ema > 0 && saved.has(ema_shapes()[0].name)) ema_ = read_parameters(ema_shapes(), saved);
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = mean_.notes();
    notes.insert(notes.begin(), method_.notes.begin(), method_.notes.end());
    return notes;
  }

 private:
  Server(const NetworkMethod& method, const Recipe& recipe, const RandomStream& random)
      : Server(method, recipe, random, make_trained_network(method.network, 1, random)) {}
  Server(const NetworkMethod& method, const Recipe& recipe, const RandomStream& random, Network network)
      : method_(method),
        recipe_(recipe),
        shapes_(shapes_of(network)),
        global_(parameters_of(network)),
        mean_(recipe.combining, learned(shapes_)) {
    if (method_.initialise) method_.initialise(random, shapes_, &global_);
    if (method_.settle) method_.settle(&global_);
  }

  // By the first round's model alone, and then by a part of every new one.
  void update_ema() {
    if (ema_.empty()) {
      ema_ = global_;
      return;
    }
    for_each(pool_, ema_.size(), [&](size_t p) {
      for (size_t i = 0; i < ema_[p].size(); ++i)
        ema_[p][i] = static_cast<float>(recipe_.ema * ema_[p][i] + (1 - recipe_.ema) * global_[p][i]);
    });
  }

  ParameterShapes ema_shapes() const {
    ParameterShapes shapes = shapes_;
    for (ParameterShape& shape : shapes) shape.name = "ema." + shape.name;
    return shapes;
  }

  NetworkMethod method_;
  Recipe recipe_;
  ParameterShapes shapes_;
  NetworkParameters global_;
  NetworkParameters ema_;  // empty before the first round, and without [federation] ema
  ClientMean mean_;
  ThreadPool* pool_ = nullptr;
};

class AveragedNetworks : public Method {
 public:
  AveragedNetworks(NetworkMethod method, const Recipe& recipe, Trainers trainers)
      : method_(std::move(method)), recipe_(recipe), trainers_(std::move(trainers)) {}

  std::unique_ptr<ClientHalf> make_client() const override {
    return std::make_unique<Client>(method_, recipe_, trainers_);
  }
  std::unique_ptr<ServerHalf> make_server() const override {
    return std::make_unique<Server>(method_, recipe_);
  }
  std::string client_key() const override { return method_.key; }
  uint32_t default_rounds() const override { return kDefaultRounds; }

 private:
  NetworkMethod method_;
  Recipe recipe_;
  Trainers trainers_;
};

// Whether [client] precision is TF32. Read only where it is given: earlier runs were recorded without it.
bool reads_tf32(const MethodContext& context) {
  const Config client = context.recipe.section("client");
  const std::vector<std::string> precisions = {"exact", "tf32"};
  if (!client.has("precision") || client.choice("precision", precisions[0], precisions) == precisions[0])
    return false;
  if (!trainers_of(context).tf32) {
    throw input_error(
        "client.precision: found 'tf32', expected 'exact': the tensor cores of a GPU have it alone "
        "(--device cuda), and their bits are not a CPU's");
  }
  return true;
}

}  // namespace

LocalWork read_local_work(const Config& recipe) {
  const Config client = recipe.section("client");
  LocalWork work;
  work.epochs = static_cast<uint32_t>(client.integer("epochs", work.epochs, 1, 100000));
  work.batch = static_cast<uint32_t>(client.integer("batch", work.batch, 1, 4096));
  return work;
}

State PlainDescent::upload(const NetworkParameters& parameters) {
  State state;
  const Trainer& trainer = *context_.trainer;
  for (size_t p = 0; p < parameters.size(); ++p) {
    const ParameterShape& shape = trainer.shapes()[p];
    if (!sends_ || sends_(shape)) add_parameter(shape, parameters[p], &state);
  }
  return state;
}

bool is_product_weights(const ParameterShape& parameter) {
  return parameter.name.ends_with(".weights");
}

void initialise_small(const RandomStream& random, const ParameterShapes& shapes,
                      NetworkParameters* parameters) {
  for (size_t p = 0; p < shapes.size(); ++p) {
    if (!is_product_weights(shapes[p])) continue;
    RandomStream draws = random.substream(p);
    for (float& value : (*parameters)[p]) value = static_cast<float>(0.01 * draws.normal());
  }
}

NetworkTraining real_network_training(const MethodContext& context) {
  NetworkTraining training;
  training.network.spec = read_network(context.recipe, context.prototype, false);
  training.network.tf32 = reads_tf32(context);
  return training;
}

NetworkMethod real_network_method(NetworkTraining training) {
  NetworkMethod method{std::move(training)};
  method.deploy = [spec = method.network.spec](const NetworkParameters& parameters) {
    return std::make_unique<NetworkModel>(spec, parameters);
  };
  return method;
}

std::unique_ptr<ClientHalf> make_network_client(const MethodContext& context, NetworkTraining training) {
  const Recipe recipe = read_recipe(context, training);
  return std::make_unique<Client>(std::move(training), recipe, trainers_of(context));
}

std::unique_ptr<Method> make_network_method(const MethodContext& context, NetworkMethod method) {
  const Recipe recipe = read_recipe(context, method);
  if (recipe.momentum > 0 || recipe.decay > 0)
    method.notes.emplace_back("local training with momentum or weight decay: see the recipe's [client]");
  if (recipe.ema > 0)
    method.notes.emplace_back(
        fmt::format("federation.ema = {}: the model is a moving average over the rounds", recipe.ema));
  if (recipe.adam) method.notes.emplace_back("local training by Adam: see the recipe's [client]");
  if (method.network.tf32)
    method.notes.emplace_back(
        "client.precision = \"tf32\": products of convolutions on a GPU's tensor cores, not the bits of a CPU");
  const Trainers trainers = trainers_of(context);
  if (trainers.plain && (recipe.adam || method.adds_to_gradient)) {
    throw input_error("--device: found {}, expected cpu: {} is trained on the CPU alone", trainers.device,
                      recipe.adam ? "client.optimizer = \"adam\"" : method.key);
  }
  return std::make_unique<AveragedNetworks>(std::move(method), recipe, trainers);
}

}  // namespace bitfed
