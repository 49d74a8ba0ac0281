#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/federated/hand_made.h"

// Banks of clauses for tests of fedtm-bank, and the method's formula computed directly.
namespace bitfed {

using hand_made::Bank;
using hand_made::Familiar;
using hand_made::fires;
using hand_made::literals_of;
using hand_made::upload_of;
using hand_made::weights_of;

inline constexpr size_t kWidth = 4;
inline constexpr size_t kLiterals = 2 * kWidth;

inline std::string recipe(size_t clauses, int models, int threshold = 1) {
  return "[model]\nname = \"tm\"\nclauses = " + std::to_string(clauses) +
         "\nthreshold = " + std::to_string(threshold) +
         "\n[method]\nname = \"fedtm-bank\"\nserver_models = " + std::to_string(models) + "\n";
}

using Clients = std::vector<std::vector<Bank>>;

// One client that has seen the class, as the formula has it.
struct Holder {
  Bank bank;
  Familiar familiar = {};

  double trust() const { return bank.samples / (bank.samples + 100.0); }
  size_t pairs() const { return bank.weights.size() / 2; }
};

// A threshold of 1 lies below all spreads of the hand-made banks.
inline std::unique_ptr<TsetlinModel> fold(const Clients& clients, size_t classes, int models,
                                          int threshold = 1) {
  const size_t clauses = clients[0][0].weights.size();
  const auto method =
      hand_made::method_of(recipe(clauses, models, threshold), hand_made::images(kWidth, classes));
  std::vector<State> uploads;
  for (const std::vector<Bank>& banks : clients) uploads.push_back(upload_of(banks, kLiterals));
  return hand_made::fuse(*method->make_server(), uploads);
}

inline std::vector<float> all_scores(const TsetlinModel& model) {
  ThreadPool pool(1);
  return model.scores(hand_made::images(kWidth, model.class_count(), hand_made::all_images(kWidth)), pool);
}

// The pairs that each holder keeps: docs/methods/fedtm-bank.md. Holder i's j-th pair is worth trust / j; the
// most valuable ones are kept, the earlier holder's among equals.
inline std::vector<size_t> shares(const std::vector<Holder>& holders, size_t pairs) {
  struct Pair {
    double worth;
    size_t holder;
  };
  std::vector<Pair> all;
  for (size_t i = 0; i < holders.size(); ++i) {
    const size_t most = holders[i].pairs() + holders[i].familiar.weights.size() / 2;
    for (size_t j = 1; j <= most; ++j) all.push_back({holders[i].trust() / static_cast<double>(j), i});
  }
  std::stable_sort(all.begin(), all.end(), [](const Pair& a, const Pair& b) { return a.worth > b.worth; });
  std::vector<size_t> kept(holders.size());
  for (size_t i = 0; i < std::min(pairs, all.size()); ++i) ++kept[all[i].holder];
  return kept;
}

// What the `share` heaviest clauses of each polarity of a bank say in the common unit, by the definition: 1
// for the holder's own samples of the class, 0 for those of the class that it tells apart worst. Empty
// clauses are none. A clause has a part in the means by its weight to the power of one and a half.
template <typename Fires>
double calibrated(const Bank& bank, size_t share, double threshold, const Fires& fires_for) {
  const auto lighter = [&](size_t a, size_t b) { return bank.weights[a] < bank.weights[b]; };
  double sum = 0;
  double left[2] = {1, 1};
  for (const size_t polarity : {0u, 1u}) {
    std::vector<size_t> own;
    double all = 0;
    double kept = 0;
    for (size_t i = polarity; i < bank.weights.size(); i += 2) {
      if (bank.clauses[i].empty()) continue;
      own.push_back(i);
      all += std::pow(bank.weights[i], 1.5);
    }
    for (size_t rank = 0; rank < share && !own.empty(); ++rank) {
      const auto heaviest = std::max_element(own.begin(), own.end(), lighter);
      kept += std::pow(bank.weights[*heaviest], 1.5);
      if (fires_for(bank.clauses[*heaviest])) sum += (polarity == 0 ? 1 : -1) * bank.weights[*heaviest];
      own.erase(heaviest);
    }
    if (all > 0) left[polarity] = kept / all;
  }
  const auto shrunk = [&](double mean) { return mean * (mean > 0 ? left[0] : left[1]); };
  const double low = shrunk(std::min(bank.negative_mean + bank.hardest_excess, bank.positive_mean));
  const double spread = std::max(shrunk(bank.positive_mean) - low, threshold * (left[0] + left[1]) / 2);
  return (sum - low) / spread;
}

// By how much a sample is unlike what a holder knows, to the holder's first `count` familiar clauses: 0 for
// its own samples on average, -1 where none of them fires. A mean below T / 2 counts as that.
template <typename Fires>
double strangeness(const Familiar& familiar, size_t count, double threshold, const Fires& fires_for) {
  double sum = 0;
  double all = 0;
  double kept = 0;
  for (size_t i = 0; i < familiar.weights.size(); ++i) {
    all += std::pow(familiar.weights[i], 1.5);
    if (i >= count) continue;
    kept += std::pow(familiar.weights[i], 1.5);
    if (fires_for(familiar.clauses[i])) sum += familiar.weights[i];
  }
  return sum / (std::max<double>(familiar.mean, threshold / 2) * kept / all) - 1;
}

// The score of one class for one image: docs/methods/fedtm-bank.md.
template <typename Fires>
double naive_score(const std::vector<Holder>& holders, size_t budget, double threshold,
                   const Fires& fires_for) {
  const std::vector<size_t> kept = shares(holders, budget / 2);
  double score = 0;
  double weight = 0;
  for (size_t i = 0; i < holders.size(); ++i) {
    const Holder& holder = holders[i];
    if (kept[i] == 0) continue;
    double opinion = calibrated(holder.bank, std::min(kept[i], holder.pairs()), threshold, fires_for) - 0.5;
    if (kept[i] > holder.pairs())
      opinion += 0.1 * strangeness(holder.familiar, 2 * (kept[i] - holder.pairs()), threshold, fires_for);
    score += holder.trust() * opinion;
    weight += holder.trust();
  }
  return score / weight;
}

// The mean sums of a whole bank: docs/methods/fedtm-bank.md.
inline double low_of(const Bank& bank) {
  return std::min<double>(bank.negative_mean + bank.hardest_excess, bank.positive_mean);
}
inline double spread_of(const Bank& bank, double threshold) {
  return std::max(bank.positive_mean - low_of(bank), threshold);
}

// Of the holders of all classes, by trust.
struct Common {
  double ratio = 0;  // low / spread
  double spread = 0;

  Common(const std::vector<std::vector<Holder>>& classes, double threshold) {
    double trust = 0;
    for (const std::vector<Holder>& holders : classes) {
      for (const Holder& holder : holders) {
        ratio += holder.trust() * low_of(holder.bank) / spread_of(holder.bank, threshold);
        spread += holder.trust() * spread_of(holder.bank, threshold);
        trust += holder.trust();
      }
    }
    ratio /= trust;
    spread /= trust;
  }
};

// The score of a class with many holders where all their clauses are kept. `prior`: a clause counts by
// weight / (literals + prior)^2, squared where the holders are complete; 0: by its weight.
template <typename Fires>
double score_of_many(const std::vector<Holder>& holders, const Common& common, bool complete,
                     double threshold, double prior, const Fires& fires_for) {
  double trust = 0;
  for (const Holder& holder : holders) trust += holder.trust();
  double score = -0.5;
  double whole[2] = {0, 0};
  double counted[2] = {0, 0};
  double fired[2] = {0, 0};
  for (const Holder& holder : holders) {
    const double spread = complete ? common.spread : spread_of(holder.bank, threshold);
    const double own = holder.trust() * low_of(holder.bank) / spread + (1 - holder.trust()) * common.ratio;
    score -= holder.trust() / trust * (complete ? common.ratio : own);
    for (size_t i = 0; i < holder.bank.weights.size(); ++i) {
      const auto literals = static_cast<double>(holder.bank.clauses[i].size());
      if (literals == 0) continue;
      const double vote = holder.trust() / trust * holder.bank.weights[i] / spread;
      const double size = std::pow(literals + prior, 2);
      const double more = complete ? holder.bank.weights[i] / size : 1;
      const double count = prior == 0 ? vote : vote / size * more;
      whole[i % 2] += vote;
      counted[i % 2] += count;
      if (fires_for(holder.bank.clauses[i])) fired[i % 2] += count;
    }
  }
  return score + fired[0] * whole[0] / counted[0] - fired[1] * whole[1] / counted[1];
}

inline std::vector<size_t> random_clause(RandomStream& random) {
  std::vector<size_t> literals;
  for (size_t literal = 0; literal < kLiterals; ++literal) {
    if (random.below(5) == 0) literals.push_back(literal);
  }
  return literals;
}

inline Bank random_bank(uint16_t label, size_t clauses, RandomStream& random) {
  Bank bank;
  bank.label = label;
  bank.samples = 1 + random.below(900);
  for (size_t i = 0; i < clauses; ++i) {
    bank.weights.push_back(1 + static_cast<int32_t>(random.below(40)));
    bank.clauses.push_back(random_clause(random));
  }
  bank.positive_mean = static_cast<float>(5 + 30 * random.uniform());
  bank.negative_mean = static_cast<float>(-20 * random.uniform());
  bank.hardest_excess = static_cast<float>(8 * random.uniform());
  return bank;
}

// As many as a client sends beside banks of `clauses`, none of them empty.
inline Familiar random_familiar(size_t clauses, RandomStream& random) {
  Familiar familiar;
  for (size_t i = 0; i < clauses / 4; ++i) {
    familiar.weights.push_back(1 + static_cast<int32_t>(random.below(40)));
    familiar.clauses.push_back(random_clause(random));
    if (familiar.clauses.back().empty()) familiar.clauses.back() = {random.below(kLiterals)};
  }
  familiar.mean = static_cast<float>(40 * random.uniform());
  return familiar;
}

}  // namespace bitfed
