#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "bitfed/base/error.h"
#include "bitfed/federated/expect_tensors.h"
#include "bitfed/federated/tsetlin/automata_federation.h"
#include "bitfed/federated/tsetlin/booleanizer_fit.h"
#include "bitfed/federated/tsetlin/tsetlin_server.h"
#include "bitfed/model/json_fields.h"

namespace bitfed {
namespace {

// A client's share in the mean of a class: its samples of the class, and three tenths of its other samples.
// Without the others a class would not learn what it must not match from clients that lack it; with all of
// them, clients that know the class only by what it is not would prevail.
constexpr uint64_t kOfTheClass = 10;
constexpr uint64_t kOfOthers = 3;

// The accumulated uploads of one class that the common machine knows: exact sums, so that the order of
// arrival does not matter.
struct Mean {
  // A client's largest share: that many times the states of a million clients fit 64 bits, times the weights
  // of sixteen do not.
  static constexpr uint64_t kMaxShare = uint64_t{1} << 36;
  __extension__ typedef unsigned __int128 Wide;

  uint64_t total = 0;
  std::vector<uint64_t> states;
  std::vector<Wide> weights;

  void add(uint64_t share, std::span<const uint8_t> of_states, std::span<const int32_t> of_weights) {
    share = std::min(share, kMaxShare);
    total += share;
    states.resize(of_states.size());
    weights.resize(of_weights.size());
    for (size_t i = 0; i < states.size(); ++i) states[i] += share * of_states[i];
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] += Wide{share} * static_cast<uint64_t>(of_weights[i]);
  }
  // Rounded to the nearest integer.
  template <typename Sum, typename T>
  void write(const std::vector<Sum>& sums, T* out) const {
    for (size_t i = 0; i < sums.size(); ++i) out[i] = static_cast<T>((sums[i] + total / 2) / total);
  }
};

// The first uploads of a class come from machines that started without clauses: clause j of one client has
// nothing to do with clause j of another, and their mean would match nothing. Each pair of clauses (one for
// the class, one against it) is taken from one holder, drawn with a preference for many samples: the holder
// with the largest product of its samples and a random number. From then on all clients refine the same
// clauses.
struct FirstClauses {
  struct Owner {
    double draw = -1;
    uint32_t client = 0;
  };
  std::vector<Owner> owners;  // of each pair
  Automata automata;

  void add(uint32_t client, uint32_t samples, RandomStream random, std::span<const uint8_t> states,
           std::span<const int32_t> weights) {
    const size_t literals = states.size() / weights.size();
    owners.resize((weights.size() + 1) / 2);
    automata.states.resize(states.size());
    automata.weights.resize(weights.size());
    for (size_t pair = 0; pair < owners.size(); ++pair) {
      const double draw = samples * random.uniform();
      Owner& owner = owners[pair];
      if (draw < owner.draw || (draw == owner.draw && client > owner.client)) continue;
      owner = {draw, client};
      const size_t first = 2 * pair;
      const size_t count = std::min<size_t>(2, weights.size() - first);
      std::copy_n(states.data() + first * literals, count * literals,
                  automata.states.data() + first * literals);
      std::copy_n(weights.data() + first, count, automata.weights.data() + first);
    }
  }
};

class AutomataServer : public ServerHalf {
 public:
  AutomataServer(TsetlinRecipe recipe, uint32_t rounds, uint64_t seed)
      : recipe_(std::move(recipe)), rounds_(rounds), random_({seed, "fedtm-first-clauses"}), fit_(recipe_) {
    if (!fit_.needed()) begin();
  }

  bool needs_preparation() const override { return fit_.needed(); }

  State broadcast(uint32_t /*round*/) const override {
    if (fit_.needed()) return fit_.broadcast();
    return common_state();
  }

  void accept(uint32_t client, const State& message) override {
    if (fit_.needed()) {
      fit_.accept(client, message);
      return;
    }
    const ClassCounts counts = read_counts(message, recipe_);
    const std::vector<uint16_t> sent = common_.sent_with(counts.classes);
    std::vector<Automata> uploads;
    for (size_t s = 0; s < common_.specialists.size(); ++s) {
      const Automata base = rows_of(common_.specialists[s], sent, clauses(s), literals_of(recipe_, s));
      Automata& upload = uploads.emplace_back(read_levels(base, states_name(s), message));
      if (recipe_.max_votes == 0) continue;
      for (int32_t& weight : upload.weights) weight = std::min(weight, recipe_.max_votes);
    }
    expect_tensors(message, 2 + common_.specialists.size());  // classes, samples, states
    for (size_t i = 0; i < sent.size(); ++i) {
      const auto found = std::find(counts.classes.begin(), counts.classes.end(), sent[i]);
      const uint32_t held = found == counts.classes.end()
                                ? 0
                                : counts.samples[static_cast<size_t>(found - counts.classes.begin())];
      for (size_t s = 0; s < uploads.size(); ++s)
        add(client, sent[i], held, counts.total(), i, s, uploads[s]);
      samples_[sent[i]] += held;
    }
  }

  void finish_round(uint32_t round) override {
    if (fit_.needed()) {
      fit_.finish(&recipe_);
      begin();
      return;
    }
    for (size_t s = 0; s < means_.size(); ++s) {
      for (size_t label = 0; label < means_[s].size(); ++label) {
        uint8_t* states = common_.specialists[s].states.data() + label * clauses(s) * literals_of(recipe_, s);
        int32_t* weights = common_.specialists[s].weights.data() + label * clauses(s);
        const Mean& mean = means_[s][label];
        const Automata& first = first_[s][label].automata;
        if (mean.total > 0) {
          mean.write(mean.states, states);
          mean.write(mean.weights, weights);
        } else if (!first.weights.empty()) {
          std::copy(first.states.begin(), first.states.end(), states);
          std::copy(first.weights.begin(), first.weights.end(), weights);
          if (s == 0) known_.insert(static_cast<uint16_t>(label));
        }
      }
    }
    common_.known.assign(known_.begin(), known_.end());
    for (size_t label = 0; label < samples_.size(); ++label)
      most_samples_[label] = std::max(most_samples_[label], samples_[label]);
    clear();
    if (round >= rounds_) expect_clauses(members());
  }

  std::unique_ptr<Model> model() const override { return model_after_round(members(), held()); }

  State save() const override {
    State state = common_state();
    state.metadata["most_samples"] = nlohmann::json(most_samples_).dump();
    return state;
  }

  void restore(const State& saved) override {
    take_booleanizers(saved, &recipe_);
    fit_ = BooleanizerFit(recipe_);
    if (fit_.needed()) return;
    begin();
    common_ = CommonMachine::read(saved, recipe_);
    known_.insert(common_.known.begin(), common_.known.end());
    if (!saved.metadata.contains("most_samples")) return;  // of an earlier build
    const nlohmann::json samples = parse_json(saved.text("most_samples"), saved.source());
    if (!samples.is_array() || samples.size() != most_samples_.size() ||
        !std::all_of(samples.begin(), samples.end(), [](const auto& n) { return n.is_number_unsigned(); }))
      throw input_error("{}: metadata 'most_samples': expected {} numbers", saved.source(),
                        most_samples_.size());
    most_samples_ = samples.get<std::vector<uint64_t>>();
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes = {
        "differs from the paper: clients send their automata's states, in 16 levels, and the server takes "
        "their mean, not the OR of the two largest holders' actions (actions = \"or2\")"};
    const std::vector<std::string>& names = recipe_.prototype.class_names;
    for (std::string& note : notes_on_few_samples(names, most_samples_, "at the clients of a round, at most"))
      notes.push_back(std::move(note));
    for (std::string& note : notes_on_silence(recipe_.prototype.class_names, held(), members()))
      notes.push_back(std::move(note));
    return notes;
  }

  std::optional<uint64_t> raw_upload_bytes() const override { return bitfed::raw_upload_bytes(recipe_); }

 private:
  size_t clauses(size_t specialist) const { return recipe_.specialists[specialist].options.clauses; }

  std::vector<bool> held() const {
    std::vector<bool> held(recipe_.prototype.class_count());
    for (const uint16_t label : known_) held[label] = true;
    return held;
  }

  std::vector<TsetlinMember> members() const {
    std::vector<TsetlinMember> members;
    for (size_t s = 0; s < common_.specialists.size(); ++s) {
      TsetlinMember& member = members.emplace_back(empty_member(recipe_, s, clauses(s)));
      const size_t literals = literals_of(recipe_, s);
      const Automata& automata = common_.specialists[s];
      for (const uint16_t label : common_.known) {
        ClassBank bank{BitMatrix(clauses(s), literals), {}};
        for (size_t clause = 0; clause < clauses(s); ++clause) {
          const size_t row = label * clauses(s) + clause;
          bank.weights.push_back(automata.weights[row]);
          for (size_t literal = 0; literal < literals; ++literal) {
            if (automata.states[row * literals + literal] > TsetlinMachine::kInitialState)
              set_bit(bank.actions.row(clause), literal);
          }
        }
        place_bank(bank, label, &member);
      }
    }
    return members;
  }

  // Also the broadcast.
  State common_state() const {
    State state;
    add_booleanizers(recipe_, &state);
    common_.add_to(recipe_, &state);
    return state;
  }

  // Once the booleanizers are fitted, and with them the number of literals.
  void begin() {
    common_ = CommonMachine::read(State(), recipe_);
    known_.clear();
    most_samples_.assign(recipe_.prototype.class_count(), 0);
    clear();
  }

  void clear() {
    const size_t classes = recipe_.prototype.class_count();
    samples_.assign(classes, 0);
    means_.assign(recipe_.specialists.size(), std::vector<Mean>(classes));
    first_.assign(recipe_.specialists.size(), std::vector<FirstClauses>(classes));
  }

  // The rows of one class, the index-th of the upload.
  void add(uint32_t client, uint16_t label, uint32_t held, uint64_t total, size_t index, size_t specialist,
           const Automata& upload) {
    const size_t count = clauses(specialist);
    const size_t states = count * literals_of(recipe_, specialist);
    const std::span<const uint8_t> of_states(upload.states.data() + index * states, states);
    const std::span<const int32_t> of_weights(upload.weights.data() + index * count, count);
    if (known_.contains(label)) {
      const uint64_t share = kOfTheClass * held + kOfOthers * (total - held);
      means_[specialist][label].add(share, of_states, of_weights);
    } else {
      const RandomStream random = random_.substream(label).substream(client);  // the same for all specialists
      first_[specialist][label].add(client, held, random, of_states, of_weights);
    }
  }

  TsetlinRecipe recipe_;
  uint32_t rounds_;  // of the run
  RandomStream random_;
  BooleanizerFit fit_;
  CommonMachine common_;
  std::set<uint16_t> known_;                      // of common_
  std::vector<uint64_t> samples_;                 // of each class, at the clients of this round
  std::vector<uint64_t> most_samples_;            // and the most of any round
  std::vector<std::vector<Mean>> means_;          // [specialist][class]
  std::vector<std::vector<FirstClauses>> first_;  // [specialist][class], of classes not known yet
};

}  // namespace

std::unique_ptr<ServerHalf> make_automata_server(const TsetlinRecipe& recipe, uint32_t rounds,
                                                 uint64_t seed) {
  return std::make_unique<AutomataServer>(recipe, rounds, seed);
}

}  // namespace bitfed
