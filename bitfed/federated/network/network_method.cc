#include "bitfed/federated/network/network_method.h"

#include "bitfed/base/error.h"
#include "bitfed/federated/expect_tensors.h"
#include "bitfed/federated/network/network_halves.h"
#include "bitfed/federated/privacy/privacy_recipe.h"
#include "bitfed/zoo/network/network_recipe.h"

namespace bitfed {
namespace {

constexpr uint32_t kDefaultRounds = 500;

// Read only where they are given: earlier runs were recorded without them. To a method with a descent of its
// own they are unknown keys.
void read_optimizer(const Config& client, const NetworkTraining& training, NetworkRounds* rounds) {
  if (training.plain_steps) return;
  const std::vector<std::string> optimizers = {"sgd", "adam"};
  rounds->adam =
      client.has("optimizer") && client.choice("optimizer", optimizers[0], optimizers) == optimizers[1];
  if (rounds->adam) return;
  if (client.has("momentum")) rounds->momentum = client.number("momentum", 0, 0, 0.9999);
  if (client.has("weight_decay")) rounds->decay = client.number("weight_decay", 0, 0, 1);
}

NetworkRounds read_rounds(const MethodContext& context, const NetworkTraining& training) {
  NetworkRounds rounds;
  rounds.seed = context.seed;
  rounds.rounds = static_cast<uint32_t>(context.recipe.integer("rounds", kDefaultRounds, 1));
  const Config client = context.recipe.section("client");
  rounds.work = read_local_work(context.recipe);
  read_optimizer(client, training, &rounds);
  const double rate = rounds.adam ? AdamOptions().rate : training.learning_rate;
  rounds.rate = client.number("learning_rate", rate, 1e-9, 1000);
  rounds.schedule = read_rate_schedule(client, rounds.rounds);
  const std::vector<std::string> augmentations = {"none", "crop-flip"};
  if (client.choice("augment", "none", augmentations) == "crop-flip")
    rounds.augmentation = Augmentation::kCropFlip;
  rounds.combining = read_combining(context.recipe);
  const Config federation = context.recipe.section("federation");
  if (federation.has("ema")) rounds.ema = federation.number("ema", 0, 0, 0.9999);
  rounds.summed = read_privacy(context.recipe, context.clients).grid.has_value();
  return rounds;
}

Trainers trainers_of(const MethodContext& context) {
  return context.trainers != nullptr ? *context.trainers : Trainers();
}

class AveragedNetworks : public Method {
 public:
  AveragedNetworks(NetworkMethod method, const NetworkRounds& rounds, Trainers trainers)
      : method_(std::move(method)), rounds_(rounds), trainers_(std::move(trainers)) {}

  std::unique_ptr<ClientHalf> make_client() const override {
    return make_client_half(method_, rounds_, trainers_);
  }
  std::unique_ptr<ServerHalf> make_server() const override { return make_server_half(method_, rounds_); }
  std::string client_key() const override { return method_.key; }
  uint32_t default_rounds() const override { return kDefaultRounds; }

 private:
  NetworkMethod method_;
  NetworkRounds rounds_;
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

Uploaded read_upload(const NetworkTraining& method, const ParameterShapes& shapes,
                     const NetworkParameters& broadcast, const State& upload) {
  Uploaded uploaded;
  if (method.read_upload) {
    uploaded.own = method.read_upload(shapes, broadcast, upload);
    uploaded.values.assign(uploaded.own.begin(), uploaded.own.end());
    return uploaded;
  }
  size_t sent = 0;
  for (size_t p = 0; p < shapes.size(); ++p) {
    const bool sends = !method.sends || method.sends(shapes[p]);
    uploaded.values.push_back(sends ? view_parameter(shapes[p], upload) : broadcast[p]);
    sent += sends ? 1 : 0;
  }
  expect_tensors(upload, 1 + sent);  // with samples
  return uploaded;
}

SumParts sum_parts_of(const NetworkTraining& method, const ParameterShapes& shapes) {
  SumParts parts;
  for (const ParameterShape& shape : shapes) {
    if (method.sends && !method.sends(shape)) continue;
    parts.push_back({shape.statistic ? SumKind::kPrecise : SumKind::kChange, shape.count()});
  }
  return parts;
}

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
  const NetworkRounds rounds = read_rounds(context, training);
  return make_client_half(std::move(training), rounds, trainers_of(context));
}

std::unique_ptr<Method> make_network_method(const MethodContext& context, NetworkMethod method) {
  const NetworkRounds rounds = read_rounds(context, method);
  if (rounds.momentum > 0 || rounds.decay > 0)
    method.notes.emplace_back("local training with momentum or weight decay: see the recipe's [client]");
  if (rounds.ema > 0)
    method.notes.emplace_back(
        fmt::format("federation.ema = {}: the model is a moving average over the rounds", rounds.ema));
  if (rounds.adam) method.notes.emplace_back("local training by Adam: see the recipe's [client]");
  if (method.network.tf32)
    method.notes.emplace_back(
        "client.precision = \"tf32\": products of convolutions on a GPU's tensor cores, not the bits of a CPU");
  const Trainers trainers = trainers_of(context);
  if (trainers.plain && (rounds.adam || method.adds_to_gradient)) {
    throw input_error("--device: found {}, expected cpu: {} is trained on the CPU alone", trainers.device,
                      rounds.adam ? "client.optimizer = \"adam\"" : method.key);
  }
  return std::make_unique<AveragedNetworks>(std::move(method), rounds, trainers);
}

}  // namespace bitfed
