#include "bitfed/federated/tsetlin/tsetlin_server.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/federated/tsetlin/booleanizer_fit.h"
#include "bitfed/federated/tsetlin/margin_fit.h"
#include "bitfed/model/json_fields.h"

namespace bitfed {
namespace {

constexpr uint32_t kMaxRounds = 2;  // the second fits one number per class, see MarginFit

bool any_of(const std::vector<bool>& classes) {
  return std::find(classes.begin(), classes.end(), true) != classes.end();
}

// Of each class, at all clients together.
std::vector<uint64_t> samples_of_classes(const Uploads& uploads, size_t classes) {
  std::vector<uint64_t> samples(classes);
  for (const auto& [client, upload] : uploads) {
    for (size_t i = 0; i < upload.classes.size(); ++i) samples[upload.classes[i]] += upload.samples[i];
  }
  return samples;
}

bool is_too_few(uint64_t samples) {
  return samples > 0 && samples < kFewSamples;
}

// What should keep a reader from trusting the result: classes that have few samples or are never predicted,
// and banks that do not tell their class apart even on their own client's samples.
std::vector<std::string> warnings(const TsetlinRecipe& recipe, const Uploads& uploads,
                                  const std::vector<TsetlinMember>& members) {
  const std::vector<uint64_t> samples = samples_of_classes(uploads, recipe.prototype.class_count());
  size_t banks = 0;
  size_t weak = 0;
  for (const auto& [client, upload] : uploads) {
    for (size_t s = 0; s < upload.banks.size(); ++s) {
      const auto threshold = static_cast<float>(recipe.specialists[s].options.threshold);
      for (const ClassBank& bank : upload.banks[s]) {
        ++banks;
        weak += bank.positive_mean - bank.hardest_mean < threshold / 2 ? 1 : 0;
      }
    }
  }
  std::vector<bool> held;
  for (const uint64_t of_class : samples) held.push_back(of_class > 0);
  std::vector<std::string> notes =
      notes_on_few_samples(recipe.prototype.class_names, samples, "at all clients together");
  for (std::string& note : notes_on_silence(recipe.prototype.class_names, held, members))
    notes.push_back(std::move(note));
  if (2 * weak > banks) {
    notes.push_back(fmt::format(
        "do not trust this model: {} of {} class banks hardly tell their class apart on their own client's "
        "samples; train longer (client.epochs), or over rounds (fedtm)",
        weak, banks));
  }
  return notes;
}

// The part of the classes that a client knows, in the mean over all samples. One of n samples is known by
// n / (n + 100); a client's samples count as elsewhere, see parts_that_count.
double known_part(const Uploads& uploads, size_t classes) {
  std::vector<uint64_t> totals;
  for (const auto& [client, upload] : uploads) totals.push_back(upload.total_samples());
  const std::vector<double> parts = parts_that_count(totals);
  double known = 0;
  double samples = 0;
  auto part = parts.begin();
  for (const auto& [client, upload] : uploads) {
    const double counted = *part++ * static_cast<double>(upload.total_samples());
    samples += counted;
    for (const uint32_t of_class : upload.samples) known += counted * trust_of(of_class);
  }
  return known / (samples * static_cast<double>(classes));
}

// Where clients know little of the classes, the fused model gains by a second exchange: its price, for the
// user to decide. Not where samples are too few for any exchange.
std::optional<std::string> note_on_second_exchange(const Uploads& uploads, const TsetlinModel& model) {
  constexpr double kLittle = 0.4;  // see docs/notebook/fedtm-bank.md
  const size_t classes = model.class_count();
  const double known = known_part(uploads, classes);
  const std::vector<uint64_t> samples = samples_of_classes(uploads, classes);
  const bool too_few = std::any_of(samples.begin(), samples.end(), is_too_few);
  if (uploads.size() < 2 || too_few || known >= kLittle) return std::nullopt;
  // Scores that depend on what is predicted together cannot be fitted.
  const auto depends = [](const TsetlinMember& member) { return member.scale == 0; };
  if (std::any_of(model.members().begin(), model.members().end(), depends)) return std::nullopt;
  uint64_t replies = 0;
  for (const auto& [client, upload] : uploads)
    replies += margin_message_bytes({upload.classes, upload.samples}, classes);
  const auto kilobytes = [](uint64_t bytes) { return static_cast<double>(bytes) / 1000; };
  return fmt::format(
      "clients know {:.0f} % of the classes (mean over samples; one of n samples counts n / (n + 100)): a second "
      "exchange, rounds = 2, is likely to help; it sends each client {:.1f} KB and takes back {:.1f} KB",
      100 * known, kilobytes(encoded_size(model.state())), kilobytes(replies / uploads.size()));
}

// Clients that disagree show in the second exchange alone: clauses of one exchange do not say it.
std::vector<std::string> notes_on_disagreement(const Disagreement& found, size_t clients) {
  constexpr double kMuch = 1.0 / 3;
  std::vector<std::string> notes;
  if (found.wrong > kMuch) {
    notes.push_back(fmt::format(
        "do not trust this model: it takes about {:.0f} % of the clients' own training samples for another class; "
        "they disagree on what the classes are, or know too little of them",
        100 * found.wrong));
  }
  if (found.clients > 0) {
    notes.push_back(fmt::format(
        "{} of {} clients: the model takes more than half of their own training samples for another class; do their "
        "labels mean what the others' mean?",
        found.clients, clients));
  }
  return notes;
}

// Adds to the scores of each class. The model is not clamped, see read_one_shot_recipe.
std::unique_ptr<TsetlinModel> with_offsets(const TsetlinModel& model, const std::vector<double>& offsets) {
  constexpr double kMaxBias = INT32_MAX;
  std::vector<TsetlinMember> members = model.members();
  TsetlinMember& first = members.front();
  for (size_t label = 0; label < offsets.size(); ++label) {
    const double bias = first.bias[label] + std::round(offsets[label] * first.scale);
    first.bias[label] = static_cast<int32_t>(std::clamp(bias, -kMaxBias, kMaxBias));
  }
  silence_absent(&members);
  return std::make_unique<TsetlinModel>(model.class_count(), std::move(members));
}

class OneShotServer : public ServerHalf {
 public:
  OneShotServer(TsetlinRecipe recipe, Fuse fuse, bool asked_to_fit)
      : recipe_(std::move(recipe)),
        fuse_(std::move(fuse)),
        asked_to_fit_(asked_to_fit),
        fit_(recipe_),
        margins_(recipe_.prototype.class_count()) {}

  bool needs_preparation() const override { return fit_.needed(); }

  State broadcast(uint32_t /*round*/) const override {
    if (fit_.needed()) return fit_.broadcast();
    if (model_ != nullptr) return model_->state();
    State state;
    add_booleanizers(recipe_, &state);
    return state;
  }

  void accept(uint32_t client, const State& message) override {
    if (fit_.needed()) {
      fit_.accept(client, message);
    } else if (model_ != nullptr) {
      margins_.accept(client, read_margins(message, recipe_));
    } else {
      uploads_[client] = read_upload(message, recipe_);
    }
  }

  void finish_round(uint32_t /*round*/) override {
    if (fit_.needed()) {
      fit_.finish(&recipe_);
    } else if (model_ != nullptr) {
      const std::vector<double> offsets = margins_.offsets();
      model_ = with_offsets(*model_, offsets);
      for (std::string& note : notes_on_disagreement(margins_.disagreement(offsets), margins_.clients()))
        notes_.push_back(std::move(note));
    } else {
      fuse_uploads();
    }
  }

  std::unique_ptr<Model> model() const override { return std::make_unique<TsetlinModel>(*model_); }

  // Uploads of the current round are not saved: the federation stores and replays them.
  State save() const override {
    State state = model_ != nullptr ? model_->state() : State();
    add_booleanizers(recipe_, &state);
    state.metadata["notes"] = nlohmann::json(notes_).dump();
    return state;
  }

  void restore(const State& saved) override {
    take_booleanizers(saved, &recipe_);
    fit_ = BooleanizerFit(recipe_);
    notes_.clear();
    for (const nlohmann::json& note : parse_json(saved.text("notes"), saved.source())) {
      if (!note.is_string()) throw input_error("{}: metadata 'notes': expected strings", saved.source());
      notes_.push_back(note.get<std::string>());
    }
    if (!saved.tensors().empty()) model_ = tsetlin_model_from_state(saved, saved.source());
  }

  std::vector<std::string> notes() const override { return notes_; }

  std::optional<uint64_t> raw_upload_bytes() const override { return bitfed::raw_upload_bytes(recipe_); }

 private:
  void fuse_uploads() {
    Fused fused = fuse_(recipe_, uploads_);
    expect_clauses(fused.members);
    silence_absent(&fused.members);
    notes_ = std::move(fused.notes);
    for (std::string& note : warnings(recipe_, uploads_, fused.members)) notes_.push_back(std::move(note));
    model_ = std::make_unique<TsetlinModel>(recipe_.prototype.class_count(), std::move(fused.members));
    if (!asked_to_fit_) {
      if (auto note = note_on_second_exchange(uploads_, *model_)) notes_.push_back(std::move(*note));
    }
    uploads_.clear();
  }

  TsetlinRecipe recipe_;
  Fuse fuse_;
  bool asked_to_fit_;  // the recipe has the second exchange
  BooleanizerFit fit_;
  MarginFit margins_;
  Uploads uploads_;
  std::unique_ptr<TsetlinModel> model_;
  std::vector<std::string> notes_;
};

class OneShotMethod : public Method {
 public:
  OneShotMethod(TsetlinRecipe recipe, Fuse fuse, bool asked_to_fit)
      : recipe_(std::move(recipe)), fuse_(std::move(fuse)), asked_to_fit_(asked_to_fit) {}

  std::unique_ptr<ClientHalf> make_client() const override { return make_tsetlin_client(recipe_); }
  std::unique_ptr<ServerHalf> make_server() const override {
    return std::make_unique<OneShotServer>(recipe_, fuse_, asked_to_fit_);
  }
  std::string client_key() const override { return kFamiliarClientKey; }
  uint32_t default_rounds() const override { return 1; }
  uint32_t max_rounds() const override { return kMaxRounds; }

 private:
  TsetlinRecipe recipe_;
  Fuse fuse_;
  bool asked_to_fit_;
};

// The span of the mean sums (over a class's samples and over the others), from the smallest to the largest. A
// class that the machine does not hold has the sum 0, which carries no information but may be the largest of
// a sample's sums, so the machine is scaled down by the fraction of the classes that it holds.
float training_scale(std::span<const ClassBank> banks, size_t classes) {
  float min = 0;
  float max = 0;
  for (const ClassBank& bank : banks) {
    min = std::min({min, bank.positive_mean, bank.negative_mean});
    max = std::max({max, bank.positive_mean, bank.negative_mean});
  }
  const auto held = static_cast<float>(std::max<size_t>(banks.size(), 1));
  return std::max(1.0f, max - min) * static_cast<float>(classes) / held;
}

bool asked_to_fit(const Config& recipe) {
  return recipe.integer("rounds", 1, 1, kMaxRounds) > 1;
}

TsetlinRecipe read_one_shot_recipe(const MethodContext& context) {
  // One recipe can compare the one-shot methods: each ignores the keys of the others.
  const std::vector<std::string> keys = {"server_models", "clusters", "gini_threshold", "actions",
                                         "normalise"};
  context.recipe.section("method").permit(keys);
  const Config method = context.recipe.section("method");
  if (asked_to_fit(context.recipe) && method.text("normalise", "") == "batch") {
    throw input_error(
        "{}: found 2, expected 1 with method.normalise = \"batch\", whose scores depend on what is "
        "predicted together",
        context.recipe.where("rounds"));
  }
  // And all of them use the same uploads, whether they read the familiar clauses or not.
  TsetlinRecipe recipe = read_tsetlin_recipe(context);
  recipe.sends_familiar = true;
  return recipe;
}

}  // namespace

Normalise read_normalise(const Config& method, const char* fallback) {
  const std::vector<std::string> known = {"training", "fixed", "batch"};
  const std::string how = method.choice("normalise", fallback, known);
  if (how == "training") return Normalise::kTraining;
  return how == "batch" ? Normalise::kBatch : Normalise::kFixed;
}

void normalise_sums(Normalise how, int32_t threshold, std::span<const ClassBank> banks,
                    TsetlinMember* member) {
  if (how == Normalise::kBatch) {
    member->clamp = threshold;
    member->scale = 0;
  }
  if (how == Normalise::kTraining) member->scale = training_scale(banks, member->bias.size());
}

TsetlinMember empty_member(const TsetlinRecipe& recipe, size_t specialist, size_t clauses) {
  const SpecialistSpec& spec = recipe.specialists[specialist];
  const size_t classes = recipe.prototype.class_count();
  TsetlinMember member;
  member.booleanizer = spec.booleanizer;
  member.shape = spec.shape(recipe.prototype);
  member.clauses = clauses;
  member.actions = BitMatrix(classes * clauses, member.shape.literals());
  member.weights.resize(classes * clauses);
  member.bias.resize(classes);
  member.scale = static_cast<float>(spec.options.threshold);
  return member;
}

std::vector<bool> classes_with_clauses(const std::vector<TsetlinMember>& members) {
  std::vector<bool> found(members.front().bias.size());
  for (const TsetlinMember& member : members) {
    for (size_t row = 0; row < member.weights.size(); ++row) {
      const uint64_t* clause = member.actions.row(row);
      const bool has_literals =
          std::any_of(clause, clause + member.actions.stride(), [](uint64_t w) { return w != 0; });
      if (has_literals && member.weights[row] != 0) found[row / member.clauses] = true;
    }
  }
  return found;
}

std::unique_ptr<TsetlinModel> model_after_round(std::vector<TsetlinMember> members,
                                                const std::vector<bool>& held) {
  if (!silence_absent(&members)) {
    for (size_t label = 0; label < held.size(); ++label) members[0].bias[label] = held[label] ? 0 : -1;
  }
  return std::make_unique<TsetlinModel>(held.size(), std::move(members));
}

std::vector<std::string> notes_on_few_samples(const std::vector<std::string>& class_names,
                                              const std::vector<uint64_t>& samples, const char* where) {
  std::vector<std::string> notes;
  for (size_t label = 0; label < samples.size(); ++label) {
    if (!is_too_few(samples[label])) continue;
    notes.push_back(fmt::format("class '{}' has {} sample{} {}: too few to trust", class_names[label],
                                samples[label], samples[label] == 1 ? "" : "s", where));
  }
  return notes;
}

std::vector<std::string> notes_on_silence(const std::vector<std::string>& class_names,
                                          const std::vector<bool>& held,
                                          const std::vector<TsetlinMember>& members) {
  if (!any_of(held)) return {};  // no round is over
  const std::vector<bool> found = classes_with_clauses(members);
  std::vector<std::string> notes;
  if (!any_of(found)) notes.emplace_back("do not trust this model: it has no clauses yet");
  for (size_t label = 0; label < held.size(); ++label) {
    if (!held[label]) {
      notes.push_back(fmt::format("no client holds class '{}': it is never predicted", class_names[label]));
    } else if (!found[label] && any_of(found)) {
      notes.push_back(fmt::format("clients hold class '{}', but it has no clauses: it is never predicted",
                                  class_names[label]));
    }
  }
  return notes;
}

void expect_clauses(const std::vector<TsetlinMember>& members) {
  if (any_of(classes_with_clauses(members))) return;
  throw failure(
      "found an empty model, whose clauses have no literals: expected more training (client.epochs) or more "
      "samples per client");
}

namespace {

int64_t lowest_sum(const TsetlinMember& member, size_t label) {
  int64_t sum = member.bias[label];
  for (size_t row = label * member.clauses; row < (label + 1) * member.clauses; ++row)
    sum += std::min(0, member.weights[row]);
  return sum;
}

// A member without clauses, by which classes that are not `found` have one less than the others.
TsetlinMember tie_breaker(const std::vector<TsetlinMember>& members, const std::vector<bool>& found) {
  TsetlinMember member;
  member.booleanizer = members.front().booleanizer;
  member.shape = members.front().shape;
  member.clauses = 1;
  member.actions = BitMatrix(found.size(), member.shape.literals());
  member.weights.resize(found.size());
  for (const bool has_clauses : found) member.bias.push_back(has_clauses ? 0 : -1);
  return member;
}

}  // namespace

bool silence_absent(std::vector<TsetlinMember>* members) {
  const size_t classes = members->front().bias.size();
  const std::vector<bool> found = classes_with_clauses(*members);
  if (!any_of(found)) return false;
  std::vector<bool> ties = found;  // as low as the others in every member: clamped sums end there
  for (TsetlinMember& member : *members) {
    int64_t lowest = 0;
    for (size_t label = 0; label < classes; ++label) {
      if (!found[label]) continue;
      const int64_t sum = lowest_sum(member, label);
      lowest = std::min(lowest, sum);
      if (member.clamp == 0 || sum > -member.clamp) ties[label] = false;
    }
    // Scores are floats of 24 bits: lower by more than their rounding.
    const int64_t below = std::max<int64_t>(lowest - 1 - std::abs(lowest) / 1024, INT32_MIN / 2);
    for (size_t label = 0; label < classes; ++label) {
      if (!found[label] && member.bias[label] > below) member.bias[label] = static_cast<int32_t>(below);
    }
  }
  if (any_of(ties) && found != std::vector<bool>(classes, true))
    members->push_back(tie_breaker(*members, found));
  return true;
}

void place_bank(const ClassBank& bank, size_t label, TsetlinMember* member) {
  for (size_t clause = 0; clause < bank.weights.size(); ++clause) {
    const size_t row = label * member->clauses + clause;
    std::copy_n(bank.actions.row(clause), bank.actions.stride(), member->actions.row(row));
    member->weights[row] = clause % 2 == 0 ? bank.weights[clause] : -bank.weights[clause];
  }
}

std::vector<double> read_budget(const Config& method, size_t specialists, double min) {
  constexpr double kMax = 1000;
  if (specialists == 1) return {method.number("server_models", 3, min, kMax)};
  const std::vector<double> budget =
      method.numbers("server_models", std::vector<double>(specialists, 3), min, kMax);
  if (budget.size() != specialists) {
    throw input_error("{}: found {} values, expected one for each of the {} machines",
                      method.where("server_models"), budget.size(), specialists);
  }
  return budget;
}

std::unique_ptr<ClientHalf> make_one_shot_client(const MethodContext& context) {
  return make_tsetlin_client(read_one_shot_recipe(context));
}

std::unique_ptr<Method> make_one_shot_method(const MethodContext& context, Fuse fuse) {
  TsetlinRecipe recipe = read_one_shot_recipe(context);
  return std::make_unique<OneShotMethod>(std::move(recipe), std::move(fuse), asked_to_fit(context.recipe));
}

}  // namespace bitfed
