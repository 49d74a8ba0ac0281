// FedTM (How et al., "FedTM: memory and communication efficient federated learning with Tsetlin machine",
// ISTM 2023): Tsetlin machines trained over rounds. By default the server takes the mean of the automata's
// states (automata_federation.h). The rules here keep one bit per automaton, its action, as the paper does:
// in every round the mean of the weights, weighted by samples of the class, and of the actions the OR of the
// two clients with the most samples of the class ("or2", the paper's), those of the largest alone ("best"),
// or their majority. Clients send reduced clauses and continue from the result: a literal that reduction
// dropped must be learned again. docs/methods/fedtm.md compares the rules.

#include <algorithm>
#include <array>
#include <optional>

#include "bitfed/base/error.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/tsetlin/automata_federation.h"
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

constexpr uint32_t kDefaultRounds = 10;

constexpr const char* kOrNote =
    "as in the paper, a clause is the OR of the two largest holders' actions: it demands what both demand, "
    "hardly ever fires, and accuracy stays low; actions = \"states\" learns";

enum class Rule { kStates, kMajority, kBest, kOrOfTwo };

// The accumulated uploads of one class: exact sums, so that the order of arrival does not matter.
struct ClassTally {
  __extension__ typedef unsigned __int128 Wide;

  uint64_t samples = 0;
  std::vector<Wide> weights;  // weighted by the client's samples
  std::array<std::optional<Candidate>, 2> top;
  std::vector<uint64_t>
      including;  // the samples of clients that include a literal of a clause; for a majority

  // Keeps the two candidates with the most samples in `top`, the larger one first.
  void add(uint32_t client, uint32_t count, const ClassBank& bank, bool majority) {
    samples += count;
    weights.resize(bank.weights.size());
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] += Wide{count} * static_cast<uint64_t>(bank.weights[i]);
    if (majority) count_actions(count, bank.actions);
    Candidate candidate{count, client, bank.actions};
    for (std::optional<Candidate>& slot : top) {
      if (!slot || candidate.before(*slot)) {
        std::optional<Candidate> displaced = std::exchange(slot, std::move(candidate));
        if (!displaced) return;
        candidate = std::move(*displaced);
      }
    }
  }

  void count_actions(uint32_t count, const BitMatrix& actions) {
    including.resize(actions.rows() * actions.columns());
    for (size_t i = 0; i < including.size(); ++i)
      including[i] += actions.get(i / actions.columns(), i % actions.columns()) ? count : 0;
  }

  BitMatrix actions(Rule rule) const {
    BitMatrix result = top[0]->actions;
    for (size_t row = 0; row < result.rows(); ++row) {
      for (size_t w = 0; rule == Rule::kOrOfTwo && top[1] && w < result.stride(); ++w)
        result.row(row)[w] |= top[1]->actions.row(row)[w];
      if (rule != Rule::kMajority) continue;
      std::fill_n(result.row(row), result.stride(), uint64_t{0});
      for (size_t literal = 0; literal < result.columns(); ++literal) {
        if (2 * including[row * result.columns() + literal] > samples) set_bit(result.row(row), literal);
      }
    }
    return result;
  }
};

class FedtmServer : public ServerHalf {
 public:
  FedtmServer(TsetlinRecipe recipe, Rule rule, uint32_t rounds)
      : recipe_(std::move(recipe)),
        rule_(rule),
        rounds_(rounds),
        fit_(recipe_),
        held_(recipe_.prototype.class_count()) {
    clear_tallies();
  }

  bool needs_preparation() const override { return fit_.needed(); }

  State broadcast(uint32_t /*round*/) const override {
    if (fit_.needed()) return fit_.broadcast();
    return clauses();
  }

  void accept(uint32_t client, const State& message) override {
    if (fit_.needed()) {
      fit_.accept(client, message);
      return;
    }
    const TsetlinUpload upload = read_upload(message, recipe_);
    for (size_t s = 0; s < tallies_.size(); ++s) {
      for (size_t i = 0; i < upload.classes.size(); ++i) {
        tallies_[s][upload.classes[i]].add(client, upload.samples[i], upload.banks[s][i],
                                           rule_ == Rule::kMajority);
      }
    }
  }

  void finish_round(uint32_t round) override {
    if (fit_.needed()) {
      fit_.finish(&recipe_);
      return;
    }
    if (banks_.empty()) reset_banks();
    for (size_t s = 0; s < tallies_.size(); ++s) {
      for (size_t label = 0; label < tallies_[s].size(); ++label) {
        update(tallies_[s][label], &banks_[s][label]);
        if (tallies_[s][label].samples > 0) held_[label] = true;
      }
    }
    clear_tallies();
    if (round >= rounds_) expect_clauses(members());
  }

  std::unique_ptr<Model> model() const override { return model_after_round(members(), held_); }

  State save() const override {
    State state = clauses();
    std::vector<uint16_t> held;
    for (size_t label = 0; label < held_.size(); ++label) {
      if (held_[label]) held.push_back(static_cast<uint16_t>(label));
    }
    if (!held.empty()) state.add("held", {held.size()}, held);
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
    restore_held(saved);
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = notes_on_silence(recipe_.prototype.class_names, held_, members());
    if (rule_ == Rule::kOrOfTwo) notes.emplace_back(kOrNote);
    return notes;
  }

  std::optional<uint64_t> raw_upload_bytes() const override { return bitfed::raw_upload_bytes(recipe_); }

 private:
  std::vector<TsetlinMember> members() const {
    std::vector<TsetlinMember> members;
    for (size_t s = 0; s < banks_.size(); ++s) {
      members.push_back(empty_member(recipe_, s, recipe_.specialists[s].options.clauses));
      for (size_t label = 0; label < banks_[s].size(); ++label)
        place_bank(banks_[s][label], label, &members.back());
    }
    return members;
  }

  // The broadcast: clients continue from the server's clauses.
  State clauses() const {
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

  // Checkpoints of earlier builds do not say which classes clients hold: those that have clauses.
  void restore_held(const State& saved) {
    held_ = classes_with_clauses(members());
    if (!saved.has("held")) return;
    for (const uint16_t label : saved.values<uint16_t>("held", {State::kAny})) {
      if (label >= held_.size())
        throw input_error("{}: tensor 'held': expected labels below {}", saved.source(), held_.size());
      held_[label] = true;
    }
  }

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
  void update(const ClassTally& tally, ClassBank* bank) const {
    if (tally.samples == 0) return;
    const uint64_t samples = tally.samples;
    for (size_t i = 0; i < tally.weights.size(); ++i) {
      // Rounded to the nearest integer.
      bank->weights[i] = static_cast<int32_t>((tally.weights[i] + samples / 2) / samples);
    }
    bank->actions = tally.actions(rule_);
  }

  TsetlinRecipe recipe_;
  Rule rule_;
  uint32_t rounds_;  // of the run
  BooleanizerFit fit_;
  std::vector<std::vector<ClassTally>> tallies_;  // [specialist][class]
  std::vector<std::vector<ClassBank>> banks_;     // [specialist][class]; empty before the first round ends
  std::vector<bool> held_;                        // by class: a client has held it in some round
};

std::unique_ptr<ClientHalf> client_of(const TsetlinRecipe& recipe, Rule rule) {
  return rule == Rule::kStates ? make_automata_client(recipe) : make_tsetlin_client(recipe);
}

class FedtmMethod : public Method {
 public:
  FedtmMethod(const MethodContext& context, Rule rule)
      : recipe_(read_tsetlin_recipe(context)),
        rule_(rule),
        rounds_(static_cast<uint32_t>(context.recipe.integer("rounds", kDefaultRounds, 1))),
        seed_(context.seed) {}

  std::unique_ptr<ClientHalf> make_client() const override { return client_of(recipe_, rule_); }
  std::unique_ptr<ServerHalf> make_server() const override {
    if (rule_ == Rule::kStates) return make_automata_server(recipe_, rounds_, seed_);
    return std::make_unique<FedtmServer>(recipe_, rule_, rounds_);
  }
  std::string client_key() const override {
    return rule_ == Rule::kStates ? kAutomataClientKey : kTsetlinClientKey;
  }
  uint32_t default_rounds() const override { return kDefaultRounds; }

 private:
  TsetlinRecipe recipe_;
  Rule rule_;
  uint32_t rounds_;
  uint64_t seed_;
};

Rule read_rule(const MethodContext& context) {
  const std::vector<std::string> known = {"states", "majority", "best", "or2"};  // in the order of Rule
  const std::string rule = context.recipe.section("method").choice("actions", "states", known);
  const auto index = std::find(known.begin(), known.end(), rule) - known.begin();
  return static_cast<Rule>(index);
}

}  // namespace

std::unique_ptr<ClientHalf> make_fedtm_client(const MethodContext& context) {
  return client_of(read_tsetlin_recipe(context), read_rule(context));
}

std::unique_ptr<Method> make_fedtm(const MethodContext& context) {
  return std::make_unique<FedtmMethod>(context, read_rule(context));
}

}  // namespace bitfed
