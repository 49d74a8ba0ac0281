// FedTM (How et al., "FedTM: memory and communication efficient federated learning with Tsetlin machine",
// ISTM 2023): in every round the server takes the mean of the weights, weighted by samples of the class, and
// the OR of the actions of the two clients with the most samples of the class. Clients send reduced clauses
// and continue from the result: a literal that reduction dropped must be learned again.

#include <array>
#include <optional>

#include "bitfed/base/error.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/tsetlin/booleanizer_fit.h"
#include "bitfed/federated/tsetlin/tsetlin_server.h"
#include "bitfed/tsetlin/clause_codec.h"

namespace bitfed {
namespace {

// A client's actions of one class, ranked by samples; the lower client on ties.
struct Candidate {
  uint32_t samples;
  uint32_t client;
  BitMatrix actions;

  bool before(const Candidate& other) const {
    return samples != other.samples ? samples > other.samples : client < other.client;
  }
};

// The accumulated uploads of one class: exact sums, so that the order of arrival does not matter.
struct ClassTally {
  uint64_t samples = 0;
  std::vector<int64_t> weights;  // weighted by the client's samples
  std::array<std::optional<Candidate>, 2> top;

  // Keeps the two candidates with the most samples in `top`, the larger one first.
  void add(uint32_t client, uint32_t count, const ClassBank& bank) {
    samples += count;
    weights.resize(bank.weights.size());
    for (size_t i = 0; i < weights.size(); ++i) weights[i] += int64_t{count} * bank.weights[i];
    Candidate candidate{count, client, bank.actions};
    for (std::optional<Candidate>& slot : top) {
      if (!slot || candidate.before(*slot)) {
        std::optional<Candidate> displaced = std::exchange(slot, std::move(candidate));
        if (!displaced) return;
        candidate = std::move(*displaced);
      }
    }
  }
};

class FedtmServer : public ServerHalf {
 public:
  explicit FedtmServer(TsetlinRecipe recipe) : recipe_(std::move(recipe)), fit_(recipe_) { clear_tallies(); }

  bool needs_preparation() const override { return fit_.needed(); }

  State broadcast(uint32_t /*round*/) const override {
    if (fit_.needed()) return fit_.broadcast();
    return save();
  }

  void accept(uint32_t client, const State& message) override {
    if (fit_.needed()) {
      fit_.accept(client, message);
      return;
    }
    const TsetlinUpload upload = read_upload(message, recipe_);
    for (size_t s = 0; s < tallies_.size(); ++s) {
      for (size_t i = 0; i < upload.classes.size(); ++i) {
        tallies_[s][upload.classes[i]].add(client, upload.samples[i], upload.banks[s][i]);
      }
    }
  }

  void finish_round(uint32_t /*round*/) override {
    if (fit_.needed()) {
      fit_.finish(&recipe_);
      return;
    }
    if (banks_.empty()) reset_banks();
    for (size_t s = 0; s < tallies_.size(); ++s) {
      for (size_t label = 0; label < tallies_[s].size(); ++label)
        update(tallies_[s][label], &banks_[s][label]);
    }
    clear_tallies();
  }

  std::unique_ptr<Model> model() const override {
    std::vector<TsetlinMember> members;
    for (size_t s = 0; s < banks_.size(); ++s) {
      members.push_back(empty_member(recipe_, s, recipe_.specialists[s].options.clauses));
      for (size_t label = 0; label < banks_[s].size(); ++label)
        place_bank(banks_[s][label], label, &members.back());
    }
    return std::make_unique<TsetlinModel>(recipe_.prototype.class_count(), std::move(members));
  }

  // Also the broadcast: clients continue from the server's clauses.
  State save() const override {
    State state;
    add_booleanizers(recipe_, &state);
    for (size_t s = 0; s < banks_.size(); ++s) {
      const size_t clauses = recipe_.specialists[s].options.clauses;
      const size_t classes = banks_[s].size();
      WeightedClauses whole{BitMatrix(classes * clauses, banks_[s][0].actions.columns()), {}};
      for (size_t label = 0; label < classes; ++label) {
        const ClassBank& bank = banks_[s][label];
        std::copy_n(bank.actions.row(0), clauses * bank.actions.stride(), whole.actions.row(label * clauses));
        whole.weights.insert(whole.weights.end(), bank.weights.begin(), bank.weights.end());
      }
      add_clauses(layout(s), whole, clauses_name(s), &state);
    }
    return state;
  }

  void restore(const State& saved) override {
    take_booleanizers(saved, &recipe_);
    fit_ = BooleanizerFit(recipe_);
    if (saved.tensors().empty()) return;
    reset_banks();
    for (size_t s = 0; s < banks_.size(); ++s) {
      const size_t clauses = recipe_.specialists[s].options.clauses;
      const auto [actions, weights] =
          read_clauses(layout(s), banks_[s].size() * clauses, clauses_name(s), saved);
      for (size_t label = 0; label < banks_[s].size(); ++label) {
        ClassBank& bank = banks_[s][label];
        std::copy_n(actions.row(label * clauses), clauses * actions.stride(), bank.actions.row(0));
        std::copy_n(weights.begin() + static_cast<std::ptrdiff_t>(label * clauses), clauses,
                    bank.weights.begin());
      }
    }
  }

  std::optional<uint64_t> raw_upload_bytes() const override { return bitfed::raw_upload_bytes(recipe_); }

 private:
  ClauseLayout layout(size_t specialist) const {
    const SpecialistSpec& spec = recipe_.specialists[specialist];
    return clause_layout(spec.shape(recipe_.prototype), spec.booleanizer);
  }

  void clear_tallies() {
    tallies_.assign(recipe_.specialists.size(), std::vector<ClassTally>(recipe_.prototype.class_count()));
  }

  // Empty clauses of weight 1 for every class.
  void reset_banks() {
    banks_.clear();
    for (const SpecialistSpec& spec : recipe_.specialists) {
      ClassBank bank;
      bank.actions = BitMatrix(spec.options.clauses, spec.shape(recipe_.prototype).literals());
      bank.weights.assign(spec.options.clauses, 1);
      banks_.emplace_back(recipe_.prototype.class_count(), bank);
    }
  }

  // A class that no client held in this round stays unchanged.
  static void update(const ClassTally& tally, ClassBank* bank) {
    if (tally.samples == 0) return;
    const auto samples = static_cast<int64_t>(tally.samples);
    for (size_t i = 0; i < tally.weights.size(); ++i) {
      // Rounded to the nearest integer.
      bank->weights[i] = static_cast<int32_t>((tally.weights[i] + samples / 2) / samples);
    }
    bank->actions = tally.top[0]->actions;
    if (!tally.top[1]) return;
    for (size_t row = 0; row < bank->actions.rows(); ++row) {
      for (size_t w = 0; w < bank->actions.stride(); ++w)
        bank->actions.row(row)[w] |= tally.top[1]->actions.row(row)[w];
    }
  }

  TsetlinRecipe recipe_;
  BooleanizerFit fit_;
  std::vector<std::vector<ClassTally>> tallies_;  // [specialist][class]
  std::vector<std::vector<ClassBank>> banks_;     // [specialist][class]; empty before the first round ends
};

class FedtmMethod : public Method {
 public:
  explicit FedtmMethod(TsetlinRecipe recipe) : recipe_(std::move(recipe)) {}

  std::unique_ptr<ClientHalf> make_client() const override { return make_tsetlin_client(recipe_); }
  std::unique_ptr<ServerHalf> make_server() const override { return std::make_unique<FedtmServer>(recipe_); }
  std::string client_key() const override { return kTsetlinClientKey; }
  uint32_t default_rounds() const override { return 10; }

 private:
  TsetlinRecipe recipe_;
};

}  // namespace

std::unique_ptr<Method> make_fedtm(const MethodContext& context) {
  return std::make_unique<FedtmMethod>(read_tsetlin_recipe(context));
}

}  // namespace bitfed
