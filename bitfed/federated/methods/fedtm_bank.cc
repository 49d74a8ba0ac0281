// Calibrated clause banks, our own one-shot aggregation; docs/methods/fedtm-bank.md derives it. A class's
// score is the weighted mean over its holders of
//     (sum - mu-) / max(mu+ - mu-, T) - 1/2 + (familiar / mu - 1) / 10,       weight n / (n + 100),
// where mu+ and mu- are the holder's mean class sums over its samples of the class and of the hardest
// competing class, familiar is the sum of its familiar clauses and mu their mean over all its samples, each
// scaled by the fraction that pruning kept. Where a class has many holders, mu- / (mu+ - mu-) is shrunk
// toward its mean over all holders. The score is linear in the clauses' outputs, so all holders' banks fold
// into one machine with a bias.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <queue>

#include <fmt/format.h>

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/tsetlin/tsetlin_server.h"

namespace bitfed {
namespace {

constexpr double kFamiliarity = 0.1;  // the largest penalty of a sample that is unlike the holder's own
constexpr double kMinModels = 1.0 / 64;

// One client that has seen the class.
struct Holder {
  uint32_t samples;
  bool calibrated;  // it has seen other classes, too
  const ClassBank* bank;
  const FamiliarClauses* familiar;

  size_t pairs() const { return bank->weights.size() / 2; }
  size_t familiar_pairs() const { return familiar->clauses.weights.size() / 2; }
  double trust() const { return trust_of(samples); }
};

// A clause before its weight is rounded to an integer.
struct FoldedClause {
  const uint64_t* actions;
  double weight;
};

struct FoldedClass {
  std::vector<FoldedClause> clauses;
  double bias = 0;
};

std::vector<Holder> holders_of(const Uploads& uploads, size_t specialist, uint16_t label) {
  std::vector<Holder> holders;
  for (const auto& [client, upload] : uploads) {
    const auto found = std::lower_bound(upload.classes.begin(), upload.classes.end(), label);
    if (found == upload.classes.end() || *found != label) continue;
    const auto i = static_cast<size_t>(found - upload.classes.begin());
    const ClassBank& bank = upload.banks[specialist][i];
    if (bank.positive_mean <= bank.negative_mean) continue;
    holders.push_back({upload.samples[i], upload.classes.size() > 1, &bank, &upload.familiar[specialist]});
  }
  // A holder of a single class cannot distinguish it from others; it is used only if there is no other
  // holder.
  if (std::any_of(holders.begin(), holders.end(), [](const Holder& holder) { return holder.calibrated; })) {
    std::erase_if(holders, [](const Holder& holder) { return !holder.calibrated; });
  }
  return holders;
}

// A holder that keeps few of its clauses cannot be calibrated: they rarely fire on another client's samples,
// and the biases decide. At most ten holders share the budget, or as many as can keep two fifths of their
// clauses.
constexpr size_t kMinHolders = 10;
constexpr double kMaxHoldersPerModel = 2.5;

size_t max_holders(double models) {
  return std::max(kMinHolders, static_cast<size_t>(models * kMaxHoldersPerModel));
}

// Of more than `room` holders, those with the most samples; the lower client on ties.
void choose_holders(size_t room, std::vector<Holder>* holders) {
  if (holders->size() <= room) return;
  std::stable_sort(holders->begin(), holders->end(),
                   [](const Holder& a, const Holder& b) { return a.samples > b.samples; });
  holders->resize(room);
}

// Which clauses of a bank are kept: the heaviest. Where a class has many holders, the heaviest clauses are
// those that fit their client's samples most closely; they have many literals and hardly ever fire on another
// client's samples. There a clause counts by weight / (literals + literal_prior). A convolutional clause may
// match anywhere in the image, so its literals restrict it less.
constexpr int64_t kFlatLiteralPrior = 15;
constexpr int64_t kPatchLiteralPrior = 40;

struct Choice {
  bool by_literals = false;
  int64_t literal_prior = 0;
};

int64_t count_literals(const BitMatrix& actions, size_t clause) {
  const uint64_t* row = actions.row(clause);
  return std::accumulate(row, row + actions.stride(), int64_t{0},
                         [](int64_t count, uint64_t word) { return count + std::popcount(word); });
}

// Nonempty clauses of one polarity, the ones to keep first.
std::vector<size_t> in_order(const ClassBank& bank, size_t polarity, const Choice& choice) {
  std::vector<size_t> clauses = by_weight(bank.actions, bank.weights, polarity);
  if (!choice.by_literals) return clauses;
  std::vector<int64_t> size(bank.weights.size());
  for (const size_t clause : clauses)
    size[clause] = count_literals(bank.actions, clause) + choice.literal_prior;
  std::stable_sort(clauses.begin(), clauses.end(),
                   [&](size_t a, size_t b) { return bank.weights[a] * size[b] > bank.weights[b] * size[a]; });
  return clauses;
}

// A clause's contribution to a mean sum, up to a factor: heavier clauses also fire more often.
double part_of_mean(int32_t weight) {
  return weight * std::sqrt(static_cast<double>(weight));
}

// A bank reduced to its heaviest clauses, with the rescaled mean sums.
struct PrunedBank {
  std::vector<FoldedClause> clauses;  // signed weights, as uploaded
  double low = 0;                     // mu- of the kept clauses
  double spread = 1;                  // mu+ - mu- of the kept clauses, at least T scaled by the same fraction
};

// mu+ comes from the clauses for the class, mu- from the clauses against it; each is scaled by the fraction
// of its polarity that is kept. In a trained machine mu+ - mu- is more than T, mostly several times T. A
// barely trained one (a single sample, a single epoch) must not be scaled up to the common unit: its noise
// would dominate the others.
PrunedBank prune(const ClassBank& bank, size_t share, double threshold, const Choice& choice) {
  PrunedBank pruned;
  std::array<double, 2> left = {1, 1};  // kept fraction of the mean sums, by polarity
  for (const size_t polarity : {0u, 1u}) {
    const std::vector<size_t> clauses = in_order(bank, polarity, choice);
    double all = 0;
    double kept = 0;
    for (size_t i = 0; i < clauses.size(); ++i) {
      const int32_t weight = bank.weights[clauses[i]];
      all += part_of_mean(weight);
      if (i >= share) continue;
      kept += part_of_mean(weight);
      const int32_t votes = polarity == 0 ? weight : -weight;
      pruned.clauses.push_back({bank.actions.row(clauses[i]), static_cast<double>(votes)});
    }
    if (all > 0) left[polarity] = kept / all;
  }
  const double high = bank.positive_mean * (bank.positive_mean > 0 ? left[0] : left[1]);
  // Whatever a client reports, no other class has a larger mean than the class itself.
  const double hardest = std::min(bank.hardest_mean, bank.positive_mean);
  pruned.low = hardest * (hardest > 0 ? left[0] : left[1]);
  pruned.spread = std::max(high - pruned.low, threshold * (left[0] + left[1]) / 2);
  return pruned;
}

// The number of pairs of clauses that each holder keeps: one clause of each polarity or, once its bank is
// complete, two familiar ones. In proportion to trust, so that a holder with little weight does not use up
// the budget. Pairs are assigned one at a time to the holder with the most trust per pair (D'Hondt); the
// first on ties; no holder gets more than it has.
std::vector<size_t> allot(const std::vector<Holder>& holders, size_t pairs) {
  struct Claim {
    double due;
    size_t holder;
    bool operator<(const Claim& other) const {
      return due != other.due ? due < other.due : holder > other.holder;
    }
  };
  std::priority_queue<Claim> claims;
  const auto claim = [&](size_t i, size_t kept) {
    if (kept < holders[i].pairs() + holders[i].familiar_pairs())
      claims.push({holders[i].trust() / static_cast<double>(kept + 1), i});
  };
  std::vector<size_t> kept(holders.size());
  for (size_t i = 0; i < holders.size(); ++i) claim(i, 0);
  for (; pairs > 0 && !claims.empty(); --pairs) {  // empty: all banks are complete
    const size_t next = claims.top().holder;
    claims.pop();
    claim(next, ++kept[next]);
  }
  return kept;
}

// Adds part * kFamiliarity * (sum / mu - 1) for the first `count` familiar clauses. mu is taken as at least T
// / 2: in a trained machine it is about T or more, and the clauses of a barely trained one must not be scaled
// up.
void fold_familiar(const FamiliarClauses& familiar, size_t count, double threshold, double part,
                   FoldedClass* folded) {
  const std::vector<int32_t>& weights = familiar.clauses.weights;
  double all = 0;
  double kept = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    all += part_of_mean(weights[i]);
    if (i < count) kept += part_of_mean(weights[i]);
  }
  const double mean = std::max<double>(familiar.mean, threshold / 2) * kept / all;
  folded->bias -= part * kFamiliarity;
  for (size_t i = 0; i < count; ++i)
    folded->clauses.push_back({familiar.clauses.actions.row(i), part * kFamiliarity * weights[i] / mean});
}

// What a class keeps of one holder.
struct Kept {
  const Holder* holder;
  size_t pairs;
  double part;  // of all holders' trust
  PrunedBank bank;

  double low() const { return bank.low / bank.spread; }
};

struct ClassHolders {
  std::vector<Holder> holders;
  std::vector<Kept> kept;
  bool many = false;  // more than kMinHolders before some were chosen
};

// `budget` clauses for the class.
void keep(size_t budget, double threshold, const Choice& choice, ClassHolders* of_class) {
  const std::vector<Holder>& holders = of_class->holders;
  const std::vector<size_t> pairs = allot(holders, budget / 2);
  double trust = 0;
  for (size_t i = 0; i < holders.size(); ++i) trust += pairs[i] > 0 ? holders[i].trust() : 0;
  for (size_t i = 0; i < holders.size(); ++i) {
    if (pairs[i] == 0) continue;
    of_class->kept.push_back({&holders[i], pairs[i], holders[i].trust() / trust,
                              prune(*holders[i].bank, pairs[i], threshold, choice)});
  }
}

// The mean of low over the holders of all classes, by trust.
double mean_low(const std::vector<ClassHolders>& classes) {
  double sum = 0;
  double trust = 0;
  for (const ClassHolders& of_class : classes) {
    for (const Kept& kept : of_class.kept) {
      sum += kept.holder->trust() * kept.low();
      trust += kept.holder->trust();
    }
  }
  return trust > 0 ? sum / trust : 0;
}

// Many holders are clients with a share of the samples each, and mostly of all classes: their class sums are
// comparable as they are, and differences between the means of few samples are noise that would decide where
// few clauses fire. So the means count by n / (n + kCalibrationPrior).
constexpr double kCalibrationPrior = 300;

FoldedClass fold(const ClassHolders& of_class, double common_low, double threshold) {
  FoldedClass folded;
  if (of_class.kept.empty()) return folded;
  folded.bias = -0.5;
  for (const Kept& kept : of_class.kept) {
    const double samples = kept.holder->samples;
    const double evidence = of_class.many ? samples / (samples + kCalibrationPrior) : 1;
    const double votes = kept.part / kept.bank.spread;
    folded.bias -= votes * kept.bank.low * evidence + kept.part * common_low * (1 - evidence);
    for (const FoldedClause& clause : kept.bank.clauses)
      folded.clauses.push_back({clause.actions, votes * clause.weight});
    if (kept.pairs > kept.holder->pairs()) {
      fold_familiar(*kept.holder->familiar, 2 * (kept.pairs - kept.holder->pairs()), threshold, kept.part,
                    &folded);
    }
  }
  return folded;
}

// A class without clauses in any machine must never be predicted: its score is below the minimum of all
// others. Where only this machine has no clauses for the class, the bias is -1.
void silence(const std::vector<bool>& spoken_for, std::vector<FoldedClass>* classes) {
  double min = 0;
  for (const FoldedClass& folded : *classes) {
    double lowest = folded.bias;
    for (const FoldedClause& clause : folded.clauses) lowest += std::min(0.0, clause.weight);
    min = std::min(min, lowest);
  }
  for (size_t label = 0; label < classes->size(); ++label) {
    FoldedClass& folded = (*classes)[label];
    if (folded.clauses.empty()) folded.bias = spoken_for[label] ? -1 : min - 1;
  }
}

// The largest power of two by which weights and biases can be multiplied and still fit their integers: with
// 24 bits per weight, rounding affects the seventh digit.
double integer_scale(const std::vector<FoldedClass>& classes) {
  double weight = 1e-9;
  double bias = 1e-9;
  for (const FoldedClass& folded : classes) {
    bias = std::max(bias, std::abs(folded.bias));
    for (const FoldedClause& clause : folded.clauses) weight = std::max(weight, std::abs(clause.weight));
  }
  return std::exp2(std::floor(std::min(24 - std::log2(weight), 30 - std::log2(bias))));
}

// Raises `most` to the largest number of holders that a class has.
std::vector<FoldedClass> fold_specialist(const TsetlinRecipe& recipe, const Uploads& uploads,
                                         size_t specialist, double models, size_t* most) {
  const MachineOptions& machine = recipe.specialists[specialist].options;
  // Rounded: 0.1 of a machine of ten clauses is one clause, but not exactly in binary.
  const auto budget = static_cast<size_t>(models * static_cast<double>(machine.clauses) + 1e-9);
  Choice choice;
  choice.literal_prior = recipe.specialists[specialist].shape(recipe.prototype).is_flat()
                             ? kFlatLiteralPrior
                             : kPatchLiteralPrior;
  std::vector<ClassHolders> classes(recipe.prototype.class_count());
  for (size_t label = 0; label < classes.size(); ++label) {
    ClassHolders& of_class = classes[label];
    of_class.holders = holders_of(uploads, specialist, static_cast<uint16_t>(label));
    *most = std::max(*most, of_class.holders.size());
    of_class.many = of_class.holders.size() > kMinHolders;
    choose_holders(max_holders(models), &of_class.holders);
    choice.by_literals = of_class.many;
    keep(std::max<size_t>(budget, 2), machine.threshold, choice, &of_class);  // at least one pair
  }
  const double common_low = mean_low(classes);
  std::vector<FoldedClass> folded;
  for (const ClassHolders& of_class : classes)
    folded.push_back(fold(of_class, common_low, machine.threshold));
  return folded;
}

TsetlinMember make_member(const TsetlinRecipe& recipe, size_t specialist,
                          const std::vector<FoldedClass>& classes) {
  size_t clauses = 2;
  for (const FoldedClass& folded : classes) clauses = std::max(clauses, folded.clauses.size());
  const double scale = integer_scale(classes);
  TsetlinMember member = empty_member(recipe, specialist, clauses);
  member.clamp = 0;
  member.scale = static_cast<float>(scale);
  for (size_t label = 0; label < classes.size(); ++label) {
    member.bias[label] = static_cast<int32_t>(std::lround(classes[label].bias * scale));
    for (size_t i = 0; i < classes[label].clauses.size(); ++i) {
      const size_t row = label * clauses + i;
      std::copy_n(classes[label].clauses[i].actions, member.actions.stride(), member.actions.row(row));
      member.weights[row] = static_cast<int32_t>(std::lround(classes[label].clauses[i].weight * scale));
    }
  }
  return member;
}

// The equal budget for every specialist that takes as many bytes as these budgets. FedTMOS needs small
// budgets for large machines; banks can be pruned to any size, and equal budgets work best.
double even_budget(const TsetlinRecipe& recipe, const std::vector<double>& budget) {
  double bytes = 0;
  double bytes_of_one = 0;
  for (size_t s = 0; s < budget.size(); ++s) {
    const SpecialistSpec& spec = recipe.specialists[s];
    const size_t clause = 4 + (spec.shape(recipe.prototype).literals() + 7) / 8;
    const auto machine = static_cast<double>(spec.options.clauses * clause);
    bytes += budget[s] * machine;
    bytes_of_one += machine;
  }
  return bytes / bytes_of_one;
}

Fused fuse(const std::vector<double>& budget, const TsetlinRecipe& recipe, const Uploads& uploads) {
  const double models = even_budget(recipe, budget);
  std::vector<std::vector<FoldedClass>> folded;
  size_t most = 0;
  std::vector<bool> spoken_for(recipe.prototype.class_count());
  for (size_t s = 0; s < recipe.specialists.size(); ++s) {
    folded.push_back(fold_specialist(recipe, uploads, s, models, &most));
    for (size_t label = 0; label < spoken_for.size(); ++label) {
      if (!folded[s][label].clauses.empty()) spoken_for[label] = true;
    }
  }
  Fused fused;
  if (most > max_holders(models)) {
    fused.notes.push_back(
        fmt::format("classes have up to {} holders: the {} with the most samples of a class were used", most,
                    max_holders(models)));
  }
  for (size_t s = 0; s < folded.size(); ++s) {
    silence(spoken_for, &folded[s]);
    fused.members.push_back(make_member(recipe, s, folded[s]));
  }
  return fused;
}

}  // namespace

std::unique_ptr<Method> make_fedtm_bank(const MethodContext& context) {
  const size_t specialists = read_specialists(context.recipe, context.prototype).size();
  const std::vector<double> budget = read_budget(context.recipe.section("method"), specialists, kMinModels);
  return make_one_shot_method(context, [budget](const TsetlinRecipe& recipe, const Uploads& uploads) {
    return fuse(budget, recipe, uploads);
  });
}

}  // namespace bitfed
