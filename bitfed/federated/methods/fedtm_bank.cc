// Calibrated clause banks, our own one-shot aggregation; docs/methods/fedtm-bank.md derives it. A class's
// score is the weighted mean over its holders of
//     (sum - mu-) / max(mu+ - mu-, T) - 1/2,        weight n / (n + 100),
// where mu+ and mu- are the holder's own mean class sums over its samples of the class and over the
// others. It is linear in the clauses' outputs, so all holders' banks fold into one machine with a bias.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/methods/tsetlin_server.h"

namespace bitfed {
namespace {

constexpr double kPriorSamples = 100;

// One client that has seen the class.
struct Holder {
  uint32_t samples;
  bool calibrated;  // it has seen other classes too, and tells them from this one
  double spread;    // mu+ - mu-, but at least T: see holders_of
  const ClassBank* bank;

  double trust() const { return samples / (samples + kPriorSamples); }
};

// A clause of the folded machine before its weight is made an integer.
struct FoldedClause {
  const uint64_t* actions;
  double weight;
};

struct FoldedClass {
  std::vector<FoldedClause> clauses;
  double bias = 0;
};

// A machine that has learned the class at all tells it from others by more than T, mostly by several times
// that. One that has not (a single sample, a single epoch) must not be blown up to the common unit: the
// little it says would drown the others.
std::vector<Holder> holders_of(const TsetlinRecipe& recipe, const Uploads& uploads, size_t specialist,
                               uint16_t label) {
  const double least_spread = recipe.specialists[specialist].options.threshold;
  std::vector<Holder> holders;
  for (const auto& [client, upload] : uploads) {
    const auto found = std::lower_bound(upload.classes.begin(), upload.classes.end(), label);
    if (found == upload.classes.end() || *found != label) continue;
    const auto i = static_cast<size_t>(found - upload.classes.begin());
    const ClassBank& bank = upload.banks[specialist][i];
    const double spread = static_cast<double>(bank.positive_mean) - static_cast<double>(bank.negative_mean);
    if (spread <= 0) continue;
    holders.push_back({upload.samples[i], upload.classes.size() > 1, std::max(spread, least_spread), &bank});
  }
  // A holder that knows nothing else cannot tell the class from others; it speaks only if nobody else does.
  if (std::any_of(holders.begin(), holders.end(), [](const Holder& holder) { return holder.calibrated; })) {
    std::erase_if(holders, [](const Holder& holder) { return !holder.calibrated; });
  }
  return holders;
}

// The heaviest non-empty clauses of one polarity, at most `count`, the lower index among equals.
std::vector<size_t> heaviest(const ClassBank& bank, size_t polarity, size_t count) {
  std::vector<size_t> clauses;
  for (size_t clause = polarity; clause < bank.weights.size(); clause += 2) {
    const uint64_t* row = bank.actions.row(clause);
    if (std::any_of(row, row + bank.actions.stride(), [](uint64_t word) { return word != 0; }))
      clauses.push_back(clause);
  }
  std::stable_sort(clauses.begin(), clauses.end(),
                   [&](size_t a, size_t b) { return bank.weights[a] > bank.weights[b]; });
  clauses.resize(std::min(clauses.size(), count));
  return clauses;
}

// `budget` clauses for the class, shared evenly among the holders and the two polarities.
FoldedClass fold(std::vector<Holder> holders, size_t budget) {
  FoldedClass folded;
  // More holders than pairs of clauses: those with the most samples keep a pair each.
  if (holders.size() > budget / 2) {
    std::stable_sort(holders.begin(), holders.end(),
                     [](const Holder& a, const Holder& b) { return a.samples > b.samples; });
    holders.resize(budget / 2);
  }
  if (holders.empty()) return folded;
  const size_t share = budget / holders.size() / 2;
  double trust = 0;
  for (const Holder& holder : holders) trust += holder.trust();
  folded.bias = -0.5;
  for (const Holder& holder : holders) {
    const double factor = holder.trust() / trust / holder.spread;
    folded.bias -= factor * static_cast<double>(holder.bank->negative_mean);
    for (const size_t polarity : {0u, 1u}) {
      for (const size_t clause : heaviest(*holder.bank, polarity, share)) {
        const double sign = polarity == 0 ? 1 : -1;
        folded.clauses.push_back(
            {holder.bank->actions.row(clause), sign * factor * holder.bank->weights[clause]});
      }
    }
  }
  return folded;
}

// A class that no machine can speak for must not win by its silence: its score lies below all that the
// others can fall to. Where only this machine is silent, it counts against the class and no more.
void silence(const std::vector<bool>& spoken_for, std::vector<FoldedClass>* classes) {
  double least = 0;
  for (const FoldedClass& folded : *classes) {
    double lowest = folded.bias;
    for (const FoldedClause& clause : folded.clauses) lowest += std::min(0.0, clause.weight);
    least = std::min(least, lowest);
  }
  for (size_t label = 0; label < classes->size(); ++label) {
    FoldedClass& folded = (*classes)[label];
    if (folded.clauses.empty()) folded.bias = spoken_for[label] ? -1 : least - 1;
  }
}

// The largest power of two by which weights and biases fit their integers with room to spare: 24 bits a
// weight make the rounding a matter of the seventh digit.
double integer_scale(const std::vector<FoldedClass>& classes) {
  double weight = 1e-9;
  double bias = 1e-9;
  for (const FoldedClass& folded : classes) {
    bias = std::max(bias, std::abs(folded.bias));
    for (const FoldedClause& clause : folded.clauses) weight = std::max(weight, std::abs(clause.weight));
  }
  return std::exp2(std::floor(std::min(24 - std::log2(weight), 30 - std::log2(bias))));
}

std::vector<FoldedClass> fold_specialist(const TsetlinRecipe& recipe, const Uploads& uploads,
                                         size_t specialist, size_t models) {
  const size_t budget = models * recipe.specialists[specialist].options.clauses;
  std::vector<FoldedClass> classes;
  for (size_t label = 0; label < recipe.prototype.class_count(); ++label) {
    classes.push_back(fold(holders_of(recipe, uploads, specialist, static_cast<uint16_t>(label)), budget));
  }
  return classes;
}

TsetlinMember make_member(const TsetlinRecipe& recipe, size_t specialist,
                          const std::vector<FoldedClass>& classes) {
  size_t most = 2;
  for (const FoldedClass& folded : classes) most = std::max(most, folded.clauses.size());
  const double scale = integer_scale(classes);
  TsetlinMember member = empty_member(recipe, specialist, most);
  member.clamp = 0;
  member.scale = static_cast<float>(scale);
  for (size_t label = 0; label < classes.size(); ++label) {
    member.bias[label] = static_cast<int32_t>(std::lround(classes[label].bias * scale));
    for (size_t i = 0; i < classes[label].clauses.size(); ++i) {
      const size_t row = label * most + i;
      std::copy_n(classes[label].clauses[i].actions, member.actions.stride(), member.actions.row(row));
      member.weights[row] = static_cast<int32_t>(std::lround(classes[label].clauses[i].weight * scale));
    }
  }
  return member;
}

Fused fuse(const std::vector<int64_t>& budget, const TsetlinRecipe& recipe, const Uploads& uploads) {
  std::vector<std::vector<FoldedClass>> folded;
  std::vector<bool> spoken_for(recipe.prototype.class_count());
  for (size_t s = 0; s < recipe.specialists.size(); ++s) {
    folded.push_back(fold_specialist(recipe, uploads, s, static_cast<size_t>(budget[s])));
    for (size_t label = 0; label < spoken_for.size(); ++label) {
      if (!folded[s][label].clauses.empty()) spoken_for[label] = true;
    }
  }
  Fused fused;
  for (size_t s = 0; s < folded.size(); ++s) {
    silence(spoken_for, &folded[s]);
    fused.members.push_back(make_member(recipe, s, folded[s]));
  }
  return fused;
}

}  // namespace

std::unique_ptr<Method> make_fedtm_bank(const MethodContext& context) {
  const size_t specialists = read_specialists(context.recipe, context.prototype).size();
  const std::vector<int64_t> budget = read_budget(context.recipe.section("method"), specialists);
  return make_one_shot_method(context, [budget](const TsetlinRecipe& recipe, const Uploads& uploads) {
    return fuse(budget, recipe, uploads);
  });
}

}  // namespace bitfed
