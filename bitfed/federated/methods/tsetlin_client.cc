#include "bitfed/federated/methods/tsetlin_client.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/federated/methods/booleanizer_fit.h"
#include "bitfed/tsetlin/compiled_clauses.h"
#include "bitfed/tsetlin/machine.h"
#include "bitfed/tsetlin/packed_actions.h"
#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {
namespace {

// Weights grow by at most one a sample and epoch; more is not a machine's work.
constexpr int32_t kMaximumWeight = 1 << 24;

std::string tensor_name(size_t specialist, const char* what) {
  return fmt::format("{}.{}", specialist, what);
}

// Classes with their numbers of samples, those seen.
void count_classes(const Dataset& samples, std::vector<uint16_t>* classes, std::vector<uint32_t>* counts) {
  std::vector<uint32_t> all(samples.class_count());
  for (const uint16_t label : samples.labels) ++all[label];
  for (size_t label = 0; label < all.size(); ++label) {
    if (all[label] == 0) continue;
    classes->push_back(static_cast<uint16_t>(label));
    counts->push_back(all[label]);
  }
}

// Mean class sums over the samples of each class and over the others, [class][2].
std::vector<float> calibrate(const TsetlinMachine& machine, const BitImages& images,
                             const std::vector<uint16_t>& labels) {
  const size_t classes = machine.class_count();
  CompiledClauses clauses(member_of(machine, {}), classes);
  const std::vector<int64_t> sums = class_sums(images, {&clauses}).front();
  std::vector<int64_t> totals(2 * classes);
  std::vector<int64_t> counts(2 * classes);
  for (size_t i = 0; i < images.count; ++i) {
    for (size_t label = 0; label < classes; ++label) {
      const size_t slot = 2 * label + (labels[i] == label ? 0 : 1);
      totals[slot] += sums[i * classes + label];
      ++counts[slot];
    }
  }
  std::vector<float> means(2 * classes);
  for (size_t slot = 0; slot < means.size(); ++slot) {
    if (counts[slot] == 0) continue;
    means[slot] = static_cast<float>(static_cast<double>(totals[slot]) / static_cast<double>(counts[slot]));
  }
  return means;
}

// A broadcast may carry a machine to go on from (see FedTM).
void restart_from_broadcast(const State& broadcast, size_t specialist, TsetlinMachine* machine) {
  const std::string actions = tensor_name(specialist, "actions");
  if (!broadcast.has(actions)) return;
  const std::vector<uint64_t> shape = {machine->class_count(), machine->options().clauses};
  machine->restart_from(unpack_actions(broadcast, actions, shape, machine->shape().literals()),
                        broadcast.values<int32_t>(tensor_name(specialist, "weights"), shape));
}

class TsetlinClient : public ClientHalf {
 public:
  explicit TsetlinClient(TsetlinRecipe recipe) : recipe_(std::move(recipe)) {}

  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    if (asks_for_quantiles(broadcast)) return quantile_message(broadcast, samples);
    TsetlinRecipe recipe = recipe_;
    take_booleanizers(broadcast, &recipe);

    State upload;
    std::vector<uint16_t> classes;
    std::vector<uint32_t> counts;
    count_classes(samples, &classes, &counts);
    upload.add("classes", {classes.size()}, classes);
    upload.add("samples", {counts.size()}, counts);
    for (size_t i = 0; i < recipe.specialists.size(); ++i) {
      train_specialist(recipe, i, broadcast, samples, context, classes, &upload);
    }
    return upload;
  }

 private:
  static void train_specialist(const TsetlinRecipe& recipe, size_t index, const State& broadcast,
                               const Dataset& samples, const ClientContext& context,
                               const std::vector<uint16_t>& classes, State* upload) {
    const SpecialistSpec& spec = recipe.specialists[index];
    const BitImages images = booleanize(spec.booleanizer, samples);
    TsetlinMachine machine(spec.options, spec.shape(samples), samples.class_count());
    restart_from_broadcast(broadcast, index, &machine);
    const RandomStream random = context.random.substream(index);
    const double share = 1.0 / static_cast<double>(recipe.specialists.size() * recipe.epochs);
    for (uint32_t epoch = 0; epoch < recipe.epochs; ++epoch) {
      machine.train_epoch(images, samples.labels, random.substream(epoch), context.stop);
      if (context.stop && context.stop()) throw Error(Error::Kind::kStopped, "stopped");
      if (context.trained) context.trained(images.count);
      if (context.progress) context.progress(static_cast<double>(index * recipe.epochs + epoch + 1) * share);
    }
    add_banks(machine, index, classes, calibrate(machine, images, samples.labels), upload);
  }

  static void add_banks(const TsetlinMachine& machine, size_t index, const std::vector<uint16_t>& classes,
                        const std::vector<float>& means, State* upload) {
    const size_t clauses = machine.options().clauses;
    BitMatrix actions(classes.size() * clauses, machine.shape().literals());
    std::vector<int32_t> weights;
    std::vector<float> calibration;
    for (size_t i = 0; i < classes.size(); ++i) {
      for (size_t clause = 0; clause < clauses; ++clause) {
        const size_t row = classes[i] * clauses + clause;
        std::copy_n(machine.actions().row(row), actions.stride(), actions.row(i * clauses + clause));
        weights.push_back(std::abs(machine.votes()[row]));
      }
      calibration.insert(calibration.end(), {means[2u * classes[i]], means[2u * classes[i] + 1]});
    }
    pack_actions(actions, tensor_name(index, "actions"), {classes.size(), clauses}, upload);
    upload->add(tensor_name(index, "weights"), {classes.size(), clauses}, weights);
    upload->add(tensor_name(index, "calibration"), {classes.size(), 2}, calibration);
  }

  TsetlinRecipe recipe_;
};

}  // namespace

uint64_t TsetlinUpload::total_samples() const {
  return std::accumulate(samples.begin(), samples.end(), uint64_t{0});
}

TsetlinRecipe read_tsetlin_recipe(const MethodContext& context) {
  TsetlinRecipe recipe;
  recipe.specialists = read_specialists(context.recipe, context.prototype);
  recipe.prototype = subset(context.prototype, {});
  recipe.epochs = static_cast<uint32_t>(context.recipe.section("client").integer("epochs", 30, 1, 100000));
  return recipe;
}

std::unique_ptr<ClientHalf> make_tsetlin_client(const TsetlinRecipe& recipe) {
  return std::make_unique<TsetlinClient>(recipe);
}

TsetlinUpload read_upload(const State& message, const TsetlinRecipe& recipe) {
  TsetlinUpload upload;
  upload.classes = message.values<uint16_t>("classes", {State::kAny});
  const size_t held = upload.classes.size();
  upload.samples = message.values<uint32_t>("samples", {held});
  for (size_t i = 0; i < held; ++i) {
    if (upload.classes[i] >= recipe.prototype.class_count() ||
        (i > 0 && upload.classes[i] <= upload.classes[i - 1])) {
      throw input_error("tensor 'classes': expected ascending numbers below {}",
                        recipe.prototype.class_count());
    }
    if (upload.samples[i] == 0)
      throw input_error("tensor 'samples': found 0 for class {}, expected at least 1", upload.classes[i]);
  }
  if (held == 0) throw input_error("tensor 'classes': found none, expected at least one class");
  for (size_t s = 0; s < recipe.specialists.size(); ++s) {
    const size_t clauses = recipe.specialists[s].options.clauses;
    const size_t literals = recipe.specialists[s].shape(recipe.prototype).literals();
    const BitMatrix actions = unpack_actions(message, tensor_name(s, "actions"), {held, clauses}, literals);
    const auto weights = message.values<int32_t>(tensor_name(s, "weights"), {held, clauses});
    const auto calibration = message.values<float>(tensor_name(s, "calibration"), {held, 2});
    const auto good_weight = [](int32_t weight) { return weight >= 1 && weight <= kMaximumWeight; };
    if (!std::all_of(weights.begin(), weights.end(), good_weight)) {
      throw input_error("tensor '{}': expected weights from 1 to {}", tensor_name(s, "weights"),
                        kMaximumWeight);
    }
    if (!std::all_of(calibration.begin(), calibration.end(),
                     [](float mean) { return std::isfinite(mean); })) {
      throw input_error("tensor '{}': expected finite numbers", tensor_name(s, "calibration"));
    }
    std::vector<ClassBank>& banks = upload.banks.emplace_back(held);
    for (size_t i = 0; i < held; ++i) {
      banks[i].actions = BitMatrix(clauses, literals);
      std::copy_n(actions.row(i * clauses), clauses * actions.stride(), banks[i].actions.row(0));
      banks[i].weights.assign(weights.begin() + static_cast<std::ptrdiff_t>(i * clauses),
                              weights.begin() + static_cast<std::ptrdiff_t>((i + 1) * clauses));
      banks[i].positive_mean = calibration[2 * i];
      banks[i].negative_mean = calibration[2 * i + 1];
    }
  }
  return upload;
}

}  // namespace bitfed
