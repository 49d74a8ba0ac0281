#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/federated/tsetlin/automata_federation.h"
#include "bitfed/federated/tsetlin/booleanizer_fit.h"
#include "bitfed/tsetlin/machine/machine.h"

namespace bitfed {
namespace {

// Of the machine's classes, these.
Automata automata_of(const TsetlinMachine& machine, const std::vector<uint16_t>& classes) {
  Automata automata;
  const std::vector<int32_t> weights = machine.weights();
  const size_t clauses = machine.options().clauses;
  for (const uint16_t label : classes) {
    for (size_t row = label * clauses; row < (label + 1u) * clauses; ++row) {
      const auto states = machine.states(row);
      automata.states.insert(automata.states.end(), states.begin(), states.end());
      automata.weights.push_back(weights[row]);
    }
  }
  return automata;
}

class AutomataClient : public ClientHalf {
 public:
  explicit AutomataClient(TsetlinRecipe recipe) : recipe_(std::move(recipe)) {}

  State train(const State& broadcast, const Dataset& samples, const ClientContext& context) const override {
    if (asks_for_quantiles(broadcast)) return quantile_message(broadcast, samples);
    TsetlinRecipe recipe = recipe_;
    take_booleanizers(broadcast, &recipe);
    const CommonMachine common = CommonMachine::read(broadcast, recipe);
    const ClassCounts counts = count_classes(samples);
    const std::vector<uint16_t> sent = common.sent_with(counts.classes);
    State upload;
    add_counts(counts, &upload);
    for (size_t s = 0; s < recipe.specialists.size(); ++s) {
      const SpecialistSpec& spec = recipe.specialists[s];
      TsetlinMachine machine(spec.options, spec.shape(samples), samples.class_count());
      machine.restart_from(std::span<const uint8_t>(common.specialists[s].states),
                           common.specialists[s].weights);
      train_machine(recipe, s, booleanize(spec.booleanizer, samples), samples.labels, context, &machine);
      const Automata base =
          rows_of(common.specialists[s], sent, spec.options.clauses, machine.shape().literals());
      add_levels(automata_of(machine, sent), base, states_name(s), &upload);
    }
    return upload;
  }

 private:
  TsetlinRecipe recipe_;
};

}  // namespace

void CommonMachine::add_to(const TsetlinRecipe& recipe, State* broadcast) const {
  if (known.empty()) return;
  broadcast->add("known", {known.size()}, known);
  for (size_t s = 0; s < specialists.size(); ++s) {
    const size_t clauses = recipe.specialists[s].options.clauses;
    add_automata(rows_of(specialists[s], known, clauses, literals_of(recipe, s)), states_name(s), broadcast);
  }
}

CommonMachine CommonMachine::read(const State& broadcast, const TsetlinRecipe& recipe) {
  CommonMachine common;
  const size_t classes = recipe.prototype.class_count();
  if (broadcast.has("known")) common.known = broadcast.values<uint16_t>("known", {State::kAny});
  for (size_t i = 0; i < common.known.size(); ++i) {
    if (common.known[i] >= classes || (i > 0 && common.known[i] <= common.known[i - 1]))
      throw input_error("{}: tensor 'known': expected ascending labels below {}", broadcast.source(),
                        classes);
  }
  for (size_t s = 0; s < recipe.specialists.size(); ++s) {
    const size_t clauses = recipe.specialists[s].options.clauses;
    const size_t literals = literals_of(recipe, s);
    Automata& all = common.specialists.emplace_back(untrained_automata(classes * clauses, literals));
    if (common.known.empty()) continue;
    const Automata rows = read_automata(common.known.size() * clauses, literals, states_name(s), broadcast);
    for (size_t i = 0; i < common.known.size(); ++i) {
      std::copy_n(rows.states.data() + i * clauses * literals, clauses * literals,
                  all.states.data() + common.known[i] * clauses * literals);
      std::copy_n(rows.weights.data() + i * clauses, clauses, all.weights.data() + common.known[i] * clauses);
    }
  }
  return common;
}

std::vector<uint16_t> CommonMachine::sent_with(const std::vector<uint16_t>& held) const {
  std::vector<uint16_t> sent;
  std::set_union(known.begin(), known.end(), held.begin(), held.end(), std::back_inserter(sent));
  return sent;
}

std::string states_name(size_t specialist) {
  return fmt::format("{}.states", specialist);
}

size_t literals_of(const TsetlinRecipe& recipe, size_t specialist) {
  return recipe.specialists[specialist].shape(recipe.prototype).literals();
}

Automata rows_of(const Automata& all, const std::vector<uint16_t>& classes, size_t clauses, size_t literals) {
  Automata rows;
  for (const uint16_t label : classes) {
    const auto* states = all.states.data() + label * clauses * literals;
    const auto* weights = all.weights.data() + label * clauses;
    rows.states.insert(rows.states.end(), states, states + clauses * literals);
    rows.weights.insert(rows.weights.end(), weights, weights + clauses);
  }
  return rows;
}

std::unique_ptr<ClientHalf> make_automata_client(const TsetlinRecipe& recipe) {
  return std::make_unique<AutomataClient>(recipe);
}

}  // namespace bitfed
