#include "bitfed/federated/tsetlin/tsetlin_server.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/federated/tsetlin/booleanizer_fit.h"
#include "bitfed/model/json_fields.h"

namespace bitfed {
namespace {

class OneShotServer : public ServerHalf {
 public:
  OneShotServer(TsetlinRecipe recipe, Fuse fuse)
      : recipe_(std::move(recipe)), fuse_(std::move(fuse)), fit_(recipe_) {}

  bool needs_preparation() const override { return fit_.needed(); }

  State broadcast(uint32_t /*round*/) const override {
    if (fit_.needed()) return fit_.broadcast();
    State state;
    add_booleanizers(recipe_, &state);
    return state;
  }

  void accept(uint32_t client, const State& message) override {
    if (fit_.needed()) {
      fit_.accept(client, message);
    } else {
      uploads_[client] = read_upload(message, recipe_);
    }
  }

  void finish_round(uint32_t /*round*/) override {
    if (fit_.needed()) {
      fit_.finish(&recipe_);
      return;
    }
    Fused fused = fuse_(recipe_, uploads_);
    notes_ = std::move(fused.notes);
    model_ = std::make_unique<TsetlinModel>(recipe_.prototype.class_count(), std::move(fused.members));
    uploads_.clear();
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
  TsetlinRecipe recipe_;
  Fuse fuse_;
  BooleanizerFit fit_;
  Uploads uploads_;
  std::unique_ptr<TsetlinModel> model_;
  std::vector<std::string> notes_;
};

class OneShotMethod : public Method {
 public:
  OneShotMethod(TsetlinRecipe recipe, Fuse fuse) : recipe_(std::move(recipe)), fuse_(std::move(fuse)) {}

  std::unique_ptr<ClientHalf> make_client() const override { return make_tsetlin_client(recipe_); }
  std::unique_ptr<ServerHalf> make_server() const override {
    return std::make_unique<OneShotServer>(recipe_, fuse_);
  }
  std::string client_key() const override { return kFamiliarClientKey; }
  uint32_t default_rounds() const override { return 1; }
  uint32_t max_rounds() const override { return 1; }

 private:
  TsetlinRecipe recipe_;
  Fuse fuse_;
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

}  // namespace

Normalise read_normalise(const Config& method, const char* fallback) {
  const std::vector<std::string> known = {"training", "fixed", "batch"};
  const std::string how = method.choice("normalise", fallback, known);
  if (how == "training") return Normalise::kTraining;
  return how == "batch" ? Normalise::kBatch : Normalise::kFixed;
}

void normalise_sums(Normalise how, std::span<const ClassBank> banks, TsetlinMember* member) {
  if (how == Normalise::kBatch) {
    member->scale = 0;
    return;
  }
  member->clamp = 0;
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
  member.clamp = spec.options.threshold;
  member.scale = static_cast<float>(spec.options.threshold);
  return member;
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

std::unique_ptr<Method> make_one_shot_method(const MethodContext& context, Fuse fuse) {
  // One recipe can compare the one-shot methods: each ignores the keys of the others.
  const std::vector<std::string> keys = {"server_models", "clusters", "gini_threshold", "actions",
                                         "normalise"};
  context.recipe.section("method").permit(keys);
  // And all of them use the same uploads, whether they read the familiar clauses or not.
  TsetlinRecipe recipe = read_tsetlin_recipe(context);
  recipe.sends_familiar = true;
  return std::make_unique<OneShotMethod>(std::move(recipe), std::move(fuse));
}

}  // namespace bitfed
