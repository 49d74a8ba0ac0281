// Calibrated clause banks, our own one-shot aggregation; docs/methods/fedtm-bank.md derives it. A class's
// score is the weighted mean over its holders of
//     (sum - mu-) / max(mu+ - mu-, T) - 1/2 + (familiar / mu - 1) / 10,       weight n / (n + 100),
// where mu+ and mu- are the holder's mean class sums over its samples of the class and of the hardest
// competing class, familiar is the sum of its familiar clauses and mu their mean over all its samples, each
// scaled by the fraction that pruning kept. Where a class has many holders, clauses of few literals count
// more, the server keeps a sample of all holders' clauses instead of everyone's heaviest, and mu- / (mu+ -
// mu-) is shrunk toward its mean over all holders. The score is linear in the clauses' outputs, so all
// holders' banks fold into one machine with a bias.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
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
  double counted;  // of them where holders are counted, see parts_that_count
  size_t seen;     // classes
  bool complete;   // it has seen all classes
  const ClassBank* bank;
  const FamiliarClauses* familiar;

  size_t pairs() const { return bank->weights.size() / 2; }
  size_t familiar_pairs() const { return familiar->clauses.weights.size() / 2; }
  bool calibrated() const { return seen > 1; }
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

std::vector<Holder> holders_of(const Uploads& uploads, const std::vector<double>& parts, size_t classes,
                               size_t specialist, uint16_t label) {
  std::vector<Holder> holders;
  auto next = parts.begin();
  for (const auto& [client, upload] : uploads) {
    const double part = *next++;
    const auto found = std::lower_bound(upload.classes.begin(), upload.classes.end(), label);
    if (found == upload.classes.end() || *found != label) continue;
    const auto i = static_cast<size_t>(found - upload.classes.begin());
    const ClassBank& bank = upload.banks[specialist][i];
    if (bank.positive_mean <= bank.negative_mean) continue;
    const size_t seen = upload.classes.size();
    const uint32_t samples = upload.samples[i];
    holders.push_back({samples, part * samples, seen, seen == classes, &bank, &upload.familiar[specialist]});
  }
  // A holder of a single class cannot distinguish it from others; it is used only if there is no other
  // holder.
  if (std::any_of(holders.begin(), holders.end(), [](const Holder& holder) { return holder.calibrated(); })) {
    std::erase_if(holders, [](const Holder& holder) { return !holder.calibrated(); });
  }
  return holders;
}

// A clause's contribution to a mean sum, up to a factor: heavier clauses also fire more often.
double part_of_mean(int32_t weight) {
  return weight * std::sqrt(static_cast<double>(weight));
}

// The mean sums of the clauses that are kept of a bank.
struct Calibration {
  double low = 0;     // mu-
  double spread = 1;  // mu+ - mu-, at least T scaled by the fraction kept
};

// mu+ comes from the clauses for the class, mu- from the clauses against it; each is scaled by the fraction
// of its polarity that is kept. In a trained machine mu+ - mu- is more than T, mostly several times T. A
// barely trained one (a single sample, a single epoch) must not be scaled up to the common unit: its noise
// would dominate the others.
Calibration calibrate(const ClassBank& bank, std::array<double, 2> left, double threshold) {
  const double high = bank.positive_mean * (bank.positive_mean > 0 ? left[0] : left[1]);
  // Whatever a client reports, no other class has a larger mean than the class itself.
  const double hardest = std::min(bank.hardest_mean, bank.positive_mean);
  const double low = hardest * (hardest > 0 ? left[0] : left[1]);
  return {low, std::max(high - low, threshold * (left[0] + left[1]) / 2)};
}

// A bank reduced to its heaviest clauses, with the rescaled mean sums.
struct PrunedBank {
  std::vector<FoldedClause> clauses;  // signed weights, as uploaded
  Calibration calibration;
};

PrunedBank prune(const ClassBank& bank, size_t share, double threshold) {
  PrunedBank pruned;
  std::array<double, 2> left = {1, 1};  // kept fraction of the mean sums, by polarity
  for (const size_t polarity : {0u, 1u}) {
    const std::vector<size_t> clauses = by_weight(bank.actions, bank.weights, polarity);
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
  pruned.calibration = calibrate(bank, left, threshold);
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

// The mean of the classes' few holders, whose heaviest clauses are kept. `budget` clauses for the class.
FoldedClass fold_few(const std::vector<Holder>& holders, size_t budget, double threshold) {
  FoldedClass folded;
  const std::vector<size_t> pairs = allot(holders, budget / 2);
  double trust = 0;
  for (size_t i = 0; i < holders.size(); ++i) trust += pairs[i] > 0 ? holders[i].trust() : 0;
  if (trust == 0) return folded;
  folded.bias = -0.5;
  for (size_t i = 0; i < holders.size(); ++i) {
    if (pairs[i] == 0) continue;
    const Holder& holder = holders[i];
    const double part = holder.trust() / trust;
    const PrunedBank bank = prune(*holder.bank, pairs[i], threshold);
    const double votes = part / bank.calibration.spread;
    folded.bias -= votes * bank.calibration.low;
    for (const FoldedClause& clause : bank.clauses)
      folded.clauses.push_back({clause.actions, votes * clause.weight});
    if (pairs[i] > holder.pairs())
      fold_familiar(*holder.familiar, 2 * (pairs[i] - holder.pairs()), threshold, part, &folded);
  }
  return folded;
}

// A class with more effective holders than this has many. They are clients with a share of the samples each.
// Their heaviest clauses are those that fit their own samples most closely; they have many literals and
// hardly ever fire on another client's samples. And the means of few samples are noise that would decide
// where few clauses fire.
constexpr double kFewHolders = 12;

// (sum n)^2 / sum n^2: the number of holders if all have as many samples. Clients with next to no samples of
// the class hardly count: where a few large holders have most samples, the class has few.
double effective_holders(const std::vector<Holder>& holders) {
  double sum = 0;
  double squares = 0;
  for (const Holder& holder : holders) {
    sum += holder.counted;
    squares += holder.counted * holder.counted;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

// Few holders have most samples, but votes go by trust: where as many of the largest have less than half of
// it, the others decide, and there are many of them.
bool are_many(const std::vector<Holder>& holders) {
  const double effective = effective_holders(holders);
  if (effective > kFewHolders) return true;
  if (static_cast<double>(holders.size()) <= kFewHolders) return false;
  std::vector<double> trusts;
  for (const Holder& holder : holders) trusts.push_back(holder.trust());
  std::sort(trusts.begin(), trusts.end(), std::greater<>());
  const auto large = trusts.begin() + static_cast<std::ptrdiff_t>(std::ceil(effective));
  return 2 * std::accumulate(trusts.begin(), large, 0.0) < std::accumulate(trusts.begin(), trusts.end(), 0.0);
}

// Of a class whose holders have seen more than two thirds of the classes, in the mean over its samples, at
// most ten times as many holders take part as the server's model has machines, but always ten: more would add
// clients with next to no samples of the class. Holders that have seen few classes know different things, and
// all of them take part.
constexpr double kMaxHoldersPerModel = 10;

bool have_seen_most(const std::vector<Holder>& holders, size_t classes) {
  double seen = 0;
  double samples = 0;
  for (const Holder& holder : holders) {
    seen += holder.counted * static_cast<double>(holder.seen);
    samples += holder.counted;
  }
  return 3 * seen > 2 * static_cast<double>(classes) * samples;
}

size_t max_holders(double models) {
  return static_cast<size_t>(std::max(models, 1.0) * kMaxHoldersPerModel);
}

// Of more than `room` holders, those with the most samples; the lower client on ties.
void choose_holders(size_t room, std::vector<Holder>* holders) {
  if (holders->size() <= room) return;
  std::stable_sort(holders->begin(), holders->end(),
                   [](const Holder& a, const Holder& b) { return a.counted > b.counted; });
  holders->resize(room);
}

// The means over the holders of all classes, by trust.
Calibration mean_calibration(const std::vector<std::vector<Holder>>& classes, double threshold) {
  double ratio = 0;
  double spread = 0;
  double trust = 0;
  for (const std::vector<Holder>& holders : classes) {
    for (const Holder& holder : holders) {
      const Calibration own = calibrate(*holder.bank, {1, 1}, threshold);
      ratio += holder.trust() * own.low / own.spread;
      spread += holder.trust() * own.spread;
      trust += holder.trust();
    }
  }
  if (trust == 0) return {};
  return {ratio / trust * spread / trust, spread / trust};
}

struct ManyHolders {
  Calibration common;
  double threshold;
  bool by_literals;  // clauses of few literals count more
};

// What a holder of many is calibrated by. Where its class has few samples, mu- / (mu+ - mu-) is drawn toward
// the mean. The sums of a client that has seen all classes were trained against each other: they are
// comparable as they are.
Calibration calibrate_of_many(const Holder& holder, const ManyHolders& many) {
  if (holder.complete) return many.common;
  const Calibration own = calibrate(*holder.bank, {1, 1}, many.threshold);
  const double common_low = many.common.low / many.common.spread * own.spread;
  return {holder.trust() * own.low + (1 - holder.trust()) * common_low, own.spread};
}

// In a convolutional machine a clause counts by weight / (literals + 40)^2; by the square of that where all
// holders have seen all classes.
constexpr double kLiteralPrior = 40;

double count_of(int32_t weight, int64_t literals, bool complete) {
  const double size = static_cast<double>(literals) + kLiteralPrior;
  const double count = weight / (size * size);
  return complete ? count * count : count;
}

int64_t count_literals(const BitMatrix& actions, size_t clause) {
  const uint64_t* row = actions.row(clause);
  return std::accumulate(row, row + actions.stride(), int64_t{0},
                         [](int64_t count, uint64_t word) { return count + std::popcount(word); });
}

// The step of a sample of `room` of more clauses, each kept with the chance min(1, |weight| / step).
double sampling_step(const std::vector<FoldedClause>& clauses, size_t room) {
  double step = std::numeric_limits<double>::infinity();
  for (size_t certain = 0;;) {
    double others = 0;
    size_t larger = 0;
    for (const FoldedClause& clause : clauses) {
      if (std::abs(clause.weight) >= step)
        ++larger;
      else
        others += std::abs(clause.weight);
    }
    if (std::isfinite(step) && (larger == certain || larger >= room)) return step;
    certain = larger;
    step = others / static_cast<double>(room - certain);
  }
}

// At most `room` clauses with the same sum on average: the heavy ones, and of the others one for every step
// of weight, which stands for that weight (a systematic sample, without random numbers).
std::vector<FoldedClause> sample(const std::vector<FoldedClause>& clauses, size_t room) {
  if (clauses.size() <= room) return clauses;
  const double step = sampling_step(clauses, room);
  std::vector<FoldedClause> kept;
  double before = 0.5;
  for (const FoldedClause& clause : clauses) {
    const double weight = std::abs(clause.weight);
    const double after = before + std::min(1.0, weight / step);
    if (std::floor(after) > std::floor(before) && kept.size() < room)
      kept.push_back({clause.actions, std::copysign(std::max(weight, step), clause.weight)});
    before = after;
  }
  return kept;
}

// The mean of many holders: a sample of all their clauses. The votes of each polarity are scaled to the sum
// that they had before literals counted, so that the calibration still fits. Clauses are sampled in the order
// of polarity and literals, so that the sample has its share of each kind.
FoldedClass fold_many(const std::vector<Holder>& holders, size_t budget, const ManyHolders& many) {
  struct Vote {
    size_t polarity;
    int64_t literals;
    FoldedClause clause;
  };
  std::vector<Vote> votes;
  std::array<double, 2> calibrated = {0, 0};  // the votes of each polarity
  std::array<double, 2> counted = {0, 0};     // and by literals
  const bool complete =
      std::all_of(holders.begin(), holders.end(), [](const Holder& holder) { return holder.complete; });
  FoldedClass folded;
  folded.bias = -0.5;
  double trust = 0;
  for (const Holder& holder : holders) trust += holder.trust();
  for (const Holder& holder : holders) {
    const Calibration calibration = calibrate_of_many(holder, many);
    const double part = holder.trust() / trust;
    folded.bias -= part * calibration.low / calibration.spread;
    const BitMatrix& actions = holder.bank->actions;
    for (size_t clause = 0; clause < actions.rows(); ++clause) {
      const int64_t literals = count_literals(actions, clause);
      if (literals == 0) continue;
      const int32_t weight = holder.bank->weights[clause];
      const double unit = part / calibration.spread;
      const double count = unit * (many.by_literals ? count_of(weight, literals, complete) : weight);
      calibrated[clause % 2] += unit * weight;
      counted[clause % 2] += count;
      votes.push_back({clause % 2, literals, {actions.row(clause), count}});
    }
  }
  std::stable_sort(votes.begin(), votes.end(), [](const Vote& a, const Vote& b) {
    return std::pair(a.polarity, a.literals) < std::pair(b.polarity, b.literals);
  });
  std::vector<FoldedClause> clauses;
  for (const Vote& vote : votes) {
    const double sign = vote.polarity == 0 ? 1 : -1;
    const double scale = calibrated[vote.polarity] / counted[vote.polarity];
    clauses.push_back({vote.clause.actions, sign * scale * vote.clause.weight});
  }
  folded.clauses = sample(clauses, budget);
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

// Raises `most` to the largest number of holders that a class has of which not all take part.
std::vector<FoldedClass> fold_specialist(const TsetlinRecipe& recipe, const Uploads& uploads,
                                         size_t specialist, double models, size_t* most) {
  const MachineOptions& machine = recipe.specialists[specialist].options;
  // Rounded: 0.1 of a machine of ten clauses is one clause, but not exactly in binary. At least one pair.
  const auto budget =
      std::max<size_t>(static_cast<size_t>(models * static_cast<double>(machine.clauses) + 1e-9), 2);
  std::vector<uint64_t> totals;
  for (const auto& [client, upload] : uploads) totals.push_back(upload.total_samples());
  const std::vector<double> parts = parts_that_count(totals);
  std::vector<std::vector<Holder>> classes;
  std::vector<bool> many;
  for (size_t label = 0; label < recipe.prototype.class_count(); ++label) {
    classes.push_back(
        holders_of(uploads, parts, recipe.prototype.class_count(), specialist, static_cast<uint16_t>(label)));
    many.push_back(are_many(classes.back()));
    if (!have_seen_most(classes.back(), recipe.prototype.class_count())) continue;
    *most = std::max(*most, classes.back().size());
    choose_holders(max_holders(models), &classes.back());
  }
  const ManyHolders of_many{mean_calibration(classes, machine.threshold),
                            static_cast<double>(machine.threshold),
                            !recipe.specialists[specialist].shape(recipe.prototype).is_flat()};
  std::vector<FoldedClass> folded;
  for (size_t label = 0; label < classes.size(); ++label) {
    folded.push_back(many[label] ? fold_many(classes[label], budget, of_many)
                                 : fold_few(classes[label], budget, machine.threshold));
  }
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
