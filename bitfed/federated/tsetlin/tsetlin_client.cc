#include "bitfed/federated/tsetlin/tsetlin_client.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/federated/expect_tensors.h"
#include "bitfed/federated/tsetlin/booleanizer_fit.h"
#include "bitfed/federated/tsetlin/margin_fit.h"
#include "bitfed/tsetlin/machine/compiled_clauses.h"
#include "bitfed/tsetlin/machine/machine.h"
#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {
namespace {

std::string calibration_name(size_t specialist) {
  return fmt::format("{}.calibration", specialist);
}

std::string familiar_name(size_t specialist) {
  return fmt::format("{}.familiar", specialist);
}

std::string familiar_mean_name(size_t specialist) {
  return fmt::format("{}.familiar_mean", specialist);
}

// The number of FamiliarClauses that are sent: half of the clauses against the class, or none.
size_t familiar_count(const TsetlinRecipe& recipe, size_t specialist) {
  return recipe.sends_familiar ? recipe.specialists[specialist].options.clauses / 4 : 0;
}

bool is_empty(const BitMatrix& actions, size_t clause) {
  const uint64_t* row = actions.row(clause);
  return std::all_of(row, row + actions.stride(), [](uint64_t word) { return word == 0; });
}

// Mean class sums of one class.
struct ClassMeans {
  double positive = 0;
  double negative = 0;
  double hardest = 0;
};

// From the total sums of a class over the samples of each true class, and their counts. The hardest class is
// the other class with the highest mean, where the mean of a class with few samples is shrunk toward the mean
// of all others by trust_of.
ClassMeans means_of(size_t label, const int64_t* totals, const std::vector<int64_t>& counts) {
  const auto mean = [](int64_t total, int64_t count) {
    return count == 0 ? 0 : static_cast<double>(total) / static_cast<double>(count);
  };
  const int64_t others = std::accumulate(counts.begin(), counts.end(), int64_t{0}) - counts[label];
  const int64_t total = std::accumulate(totals, totals + counts.size(), int64_t{0}) - totals[label];
  ClassMeans means{mean(totals[label], counts[label]), mean(total, others)};
  means.hardest = means.negative;
  for (size_t other = 0; other < counts.size(); ++other) {
    if (other == label || counts[other] == 0) continue;
    const double away = mean(totals[other], counts[other]) - means.negative;
    means.hardest =
        std::max(means.hardest, means.negative + trust_of(static_cast<uint64_t>(counts[other])) * away);
  }
  return means;
}

// The means of every class.
std::vector<ClassMeans> calibrate(const TsetlinMachine& machine, const BitImages& images,
                                  const std::vector<uint16_t>& labels) {
  const size_t classes = machine.class_count();
  CompiledClauses clauses(member_of(machine, {}), classes);
  const std::vector<int64_t> sums = class_sums(images, {&clauses}).front();
  std::vector<int64_t> totals(classes * classes);  // [class][true class]
  std::vector<int64_t> counts(classes);
  for (size_t i = 0; i < images.count; ++i) {
    ++counts[labels[i]];
    for (size_t label = 0; label < classes; ++label)
      totals[label * classes + labels[i]] += sums[i * classes + label];
  }
  std::vector<ClassMeans> means;
  for (size_t label = 0; label < classes; ++label)
    means.push_back(means_of(label, totals.data() + label * classes, counts));
  return means;
}

// A broadcast may contain a machine to continue from (see FedTM).
void restart_from_broadcast(const State& broadcast, size_t specialist, const ClauseLayout& layout,
                            TsetlinMachine* machine) {
  if (!broadcast.has(clauses_name(specialist))) return;
  const size_t count = machine->class_count() * machine->options().clauses;
  const WeightedClauses clauses = read_clauses(layout, count, clauses_name(specialist), broadcast);
  machine->restart_from(clauses.actions, clauses.weights);
}

// The clauses of these classes as they are sent: reduced.
WeightedClauses clauses_of(const TsetlinMachine& machine, const ClauseLayout& layout,
                           const std::vector<uint16_t>& classes) {
  const size_t clauses = machine.options().clauses;
  WeightedClauses sent{BitMatrix(classes.size() * clauses, layout.literals()), {}};
  for (size_t i = 0; i < classes.size(); ++i) {
    for (size_t clause = 0; clause < clauses; ++clause) {
      const size_t row = classes[i] * clauses + clause;
      std::copy_n(machine.actions().row(row), sent.actions.stride(), sent.actions.row(i * clauses + clause));
      sent.weights.push_back(std::abs(machine.votes()[row]));
    }
  }
  reduce_clauses(layout, &sent.actions);
  return sent;
}

// The lowest class that is not in `classes`, which ascend.
uint16_t first_unseen(const std::vector<uint16_t>& classes) {
  uint16_t label = 0;
  while (label < classes.size() && classes[label] == label) ++label;
  return label;
}

// Padded with empty clauses to `count`.
WeightedClauses familiar_clauses(const TsetlinMachine& machine, const ClauseLayout& layout, uint16_t unseen,
                                 size_t count) {
  const WeightedClauses all = clauses_of(machine, layout, {unseen});
  std::vector<size_t> chosen = by_weight(all.actions, all.weights, 1);
  chosen.resize(std::min(chosen.size(), count));
  WeightedClauses familiar{BitMatrix(count, layout.literals()), std::vector<int32_t>(count, 1)};
  for (size_t i = 0; i < chosen.size(); ++i) {
    std::copy_n(all.actions.row(chosen[i]), all.actions.stride(), familiar.actions.row(i));
    familiar.weights[i] = all.weights[chosen[i]];
  }
  return familiar;
}

// The mean over the images of the sum of the firing clauses' weights.
float mean_sum(const WeightedClauses& clauses, const PatchShape& shape, const BitImages& images) {
  TsetlinMember member;
  member.shape = shape;
  member.clauses = clauses.weights.size();
  member.actions = clauses.actions;
  member.weights = clauses.weights;
  member.bias = {0};
  const CompiledClauses compiled(member, 1);
  const std::vector<int64_t> sums = class_sums(images, {&compiled}).front();
  const int64_t total = std::accumulate(sums.begin(), sums.end(), int64_t{0});
  return static_cast<float>(static_cast<double>(total) / static_cast<double>(images.count));
}

// See TsetlinRecipe::max_votes.
void clip_votes(int32_t max_votes, int32_t threshold, ClassBank* bank) {
  for (int32_t& weight : bank->weights) weight = std::min(weight, max_votes);
  const auto span = static_cast<float>(threshold);
  if (bank->positive_mean > bank->negative_mean) {
    bank->positive_mean = std::max(bank->positive_mean, bank->negative_mean + span);
  } else {
    bank->negative_mean = std::max(bank->negative_mean, span);
  }
}

// Drops the empty clauses that padded the message.
FamiliarClauses read_familiar(const State& message, size_t specialist, const ClauseLayout& layout,
                              size_t count, int32_t max_votes) {
  const auto [actions, weights] = read_clauses(layout, count, familiar_name(specialist), message);
  const std::string mean_name = familiar_mean_name(specialist);
  FamiliarClauses familiar{{}, message.values<float>(mean_name, {1})[0]};
  const float max = static_cast<float>(count) * static_cast<float>(kMaximumWeight);
  if (!(familiar.mean >= 0 && familiar.mean <= max))
    throw input_error("tensor '{}': expected a number from 0 to {}", mean_name, max);
  familiar.clauses.actions = BitMatrix(count, layout.literals());
  for (size_t i = 0; i < count; ++i) {
    if (is_empty(actions, i)) continue;
    std::copy_n(actions.row(i), actions.stride(),
                familiar.clauses.actions.row(familiar.clauses.weights.size()));
    familiar.clauses.weights.push_back(max_votes > 0 ? std::min(weights[i], max_votes) : weights[i]);
  }
  return familiar;
}

class TsetlinClient : public ClientHalf {
 public:
  explicit TsetlinClient(TsetlinRecipe recipe) : recipe_(std::move(recipe)) {}

  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    if (asks_for_quantiles(broadcast)) return quantile_message(broadcast, samples);
    if (asks_for_margins(broadcast)) return margin_message(broadcast, samples);
    TsetlinRecipe recipe = recipe_;
    take_booleanizers(broadcast, &recipe);

    State upload;
    const ClassCounts counts = count_classes(samples);
    add_counts(counts, &upload);
    for (size_t i = 0; i < recipe.specialists.size(); ++i) {
      train_specialist(recipe, i, broadcast, samples, context, counts.classes, &upload);
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
    const ClauseLayout layout = clause_layout(machine.shape(), spec.booleanizer);
    restart_from_broadcast(broadcast, index, layout, &machine);
    train_machine(recipe, index, images, samples.labels, context, &machine);
    add_clauses(layout, clauses_of(machine, layout, classes), clauses_name(index), upload);
    const std::vector<ClassMeans> means = calibrate(machine, images, samples.labels);
    std::vector<float> calibration;
    for (const uint16_t label : classes) {
      const ClassMeans& of_class = means[label];
      for (const double mean : {of_class.positive, of_class.negative, of_class.hardest})
        calibration.push_back(static_cast<float>(mean));
    }
    upload->add(calibration_name(index), {classes.size(), 3}, calibration);
    const size_t familiar_ones = familiar_count(recipe, index);
    if (familiar_ones == 0 || classes.size() == machine.class_count()) return;
    const WeightedClauses familiar = familiar_clauses(machine, layout, first_unseen(classes), familiar_ones);
    add_clauses(layout, familiar, familiar_name(index), upload);
    upload->add(familiar_mean_name(index), {1}, std::vector{mean_sum(familiar, machine.shape(), images)});
  }

  TsetlinRecipe recipe_;
};

}  // namespace

uint64_t ClassCounts::total() const {
  return std::accumulate(samples.begin(), samples.end(), uint64_t{0});
}

ClassCounts count_classes(const Dataset& samples) {
  std::vector<uint32_t> all(samples.class_count());
  for (const uint16_t label : samples.labels) ++all[label];
  ClassCounts counts;
  for (size_t label = 0; label < all.size(); ++label) {
    if (all[label] == 0) continue;
    counts.classes.push_back(static_cast<uint16_t>(label));
    counts.samples.push_back(all[label]);
  }
  return counts;
}

void add_counts(const ClassCounts& counts, State* upload) {
  upload->add("classes", {counts.classes.size()}, counts.classes);
  upload->add("samples", {counts.samples.size()}, counts.samples);
}

void train_machine(const TsetlinRecipe& recipe, size_t specialist, const BitImages& images,
                   const std::vector<uint16_t>& labels, const ClientContext& context,
                   TsetlinMachine* machine) {
  // A stream per specialist, a substream per epoch.
  const RandomStream random = context.random.substream(specialist);
  const double share = 1.0 / static_cast<double>(recipe.specialists.size() * recipe.epochs);
  for (uint32_t epoch = 0; epoch < recipe.epochs; ++epoch) {
    machine->train_epoch(images, labels, random.substream(epoch), context.stop);
    if (context.stop && context.stop()) throw Error(Error::Kind::kStopped, "stopped");
    if (context.trained) context.trained(images.count);
    if (context.progress)
      context.progress(static_cast<double>(specialist * recipe.epochs + epoch + 1) * share);
  }
}

uint64_t TsetlinUpload::total_samples() const {
  return std::accumulate(samples.begin(), samples.end(), uint64_t{0});
}

std::vector<double> parts_that_count(const std::vector<uint64_t>& totals) {
  constexpr double kMaxMedians = 10;
  if (totals.empty()) return {};
  std::vector<uint64_t> sorted = totals;
  const auto median = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::nth_element(sorted.begin(), median, sorted.end());
  const double most = kMaxMedians * static_cast<double>(*median);
  std::vector<double> parts;
  for (const uint64_t total : totals) parts.push_back(std::min(1.0, most / static_cast<double>(total)));
  return parts;
}

std::vector<size_t> by_weight(const BitMatrix& actions, const std::vector<int32_t>& weights,
                              size_t polarity) {
  std::vector<size_t> clauses;
  for (size_t clause = polarity; clause < weights.size(); clause += 2) {
    if (!is_empty(actions, clause)) clauses.push_back(clause);
  }
  std::sort(clauses.begin(), clauses.end(),
            [&](size_t a, size_t b) { return weights[a] != weights[b] ? weights[a] > weights[b] : a < b; });
  return clauses;
}

std::string clauses_name(size_t specialist) {
  return fmt::format("{}.clauses", specialist);
}

uint64_t raw_upload_bytes(const TsetlinRecipe& recipe) {
  uint64_t bytes = 0;
  for (const SpecialistSpec& spec : recipe.specialists) {
    const size_t words = 1 + (spec.shape(recipe.prototype).literals() + 31) / 32;
    bytes += 4 * recipe.prototype.class_count() * spec.options.clauses * words;
  }
  return bytes;
}

TsetlinRecipe read_tsetlin_recipe(const MethodContext& context) {
  TsetlinRecipe recipe;
  recipe.specialists = read_specialists(context.recipe, context.prototype);
  recipe.prototype = subset(context.prototype, {});
  recipe.epochs = static_cast<uint32_t>(context.recipe.section("client").integer("epochs", 30, 1, 100000));
  const Config federation = context.recipe.section("federation");
  if (const auto key = federation.name_in_use("max_votes", "most_votes"); federation.has(key))
    recipe.max_votes = static_cast<int32_t>(federation.integer(key, 1, 1));
  if (const auto key = federation.name_in_use("max_samples", "most_samples"); federation.has(key))
    recipe.max_samples = static_cast<uint32_t>(federation.integer(key, 1, 1));
  return recipe;
}

std::unique_ptr<ClientHalf> make_tsetlin_client(const TsetlinRecipe& recipe) {
  return std::make_unique<TsetlinClient>(recipe);
}

ClassCounts read_counts(const State& message, const TsetlinRecipe& recipe) {
  ClassCounts counts;
  counts.classes = message.values<uint16_t>("classes", {State::kAny});
  const size_t held = counts.classes.size();
  counts.samples = message.values<uint32_t>("samples", {held});
  for (size_t i = 0; i < held; ++i) {
    if (counts.classes[i] >= recipe.prototype.class_count() ||
        (i > 0 && counts.classes[i] <= counts.classes[i - 1])) {
      throw input_error("tensor 'classes': expected ascending labels below {}",
                        recipe.prototype.class_count());
    }
    if (counts.samples[i] == 0)
      throw input_error("tensor 'samples': found 0 for class {}, expected at least 1", counts.classes[i]);
    counts.samples[i] = std::min(counts.samples[i], recipe.max_samples);
  }
  if (held == 0) throw input_error("tensor 'classes': found none, expected at least one class");
  return counts;
}

// Untrusted: every size follows from the recipe and the number of classes, every value is checked. Limits of
// the recipe (max_samples, max_votes) are applied here, so that no server sees more.
TsetlinUpload read_upload(const State& message, const TsetlinRecipe& recipe) {
  TsetlinUpload upload;
  ClassCounts counts = read_counts(message, recipe);
  upload.classes = std::move(counts.classes);
  upload.samples = std::move(counts.samples);
  const size_t held = upload.classes.size();
  size_t tensors = 2 + 2 * recipe.specialists.size();  // classes, samples; clauses and calibration
  for (size_t s = 0; s < recipe.specialists.size(); ++s) {
    const size_t clauses = recipe.specialists[s].options.clauses;
    const ClauseLayout layout =
        clause_layout(recipe.specialists[s].shape(recipe.prototype), recipe.specialists[s].booleanizer);
    const auto [actions, weights] = read_clauses(layout, held * clauses, clauses_name(s), message);
    const auto calibration = message.values<float>(calibration_name(s), {held, 3});
    // No sum of these clauses can be larger; larger values could make a model that is not finite.
    const float max = static_cast<float>(clauses) * static_cast<float>(kMaximumWeight);
    if (!std::all_of(calibration.begin(), calibration.end(),
                     [max](float mean) { return std::fabs(mean) <= max; })) {
      throw input_error("tensor '{}': expected finite values within ±{}", calibration_name(s), max);
    }
    std::vector<ClassBank>& banks = upload.banks.emplace_back(held);
    for (size_t i = 0; i < held; ++i) {
      banks[i].actions = BitMatrix(clauses, layout.literals());
      std::copy_n(actions.row(i * clauses), clauses * actions.stride(), banks[i].actions.row(0));
      banks[i].weights.assign(weights.begin() + static_cast<std::ptrdiff_t>(i * clauses),
                              weights.begin() + static_cast<std::ptrdiff_t>((i + 1) * clauses));
      banks[i].positive_mean = calibration[3 * i];
      banks[i].negative_mean = calibration[3 * i + 1];
      banks[i].hardest_mean = calibration[3 * i + 2];
      if (recipe.max_votes > 0)
        clip_votes(recipe.max_votes, recipe.specialists[s].options.threshold, &banks[i]);
    }
    const size_t familiar_ones = familiar_count(recipe, s);
    FamiliarClauses& familiar = upload.familiar.emplace_back();
    if (familiar_ones > 0 && held < recipe.prototype.class_count())
      familiar = read_familiar(message, s, layout, familiar_ones, recipe.max_votes);
    tensors += (message.has(familiar_name(s)) ? 1u : 0u) + (message.has(familiar_mean_name(s)) ? 1u : 0u);
  }
  expect_tensors(message, tensors);
  return upload;
}

}  // namespace bitfed
