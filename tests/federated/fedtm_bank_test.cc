#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/federated/hand_made.h"

namespace bitfed {
namespace {

using hand_made::Bank;
using hand_made::Familiar;
using hand_made::fires;
using hand_made::literals_of;
using hand_made::upload_of;
using hand_made::weights_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kWidth = 4;
constexpr size_t kLiterals = 2 * kWidth;

std::string recipe(size_t clauses, int models, int threshold = 1) {
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
std::unique_ptr<TsetlinModel> fold(const Clients& clients, size_t classes, int models, int threshold = 1) {
  const size_t clauses = clients[0][0].weights.size();
  const auto method =
      hand_made::method_of(recipe(clauses, models, threshold), hand_made::images(kWidth, classes));
  std::vector<State> uploads;
  for (const std::vector<Bank>& banks : clients) uploads.push_back(upload_of(banks, kLiterals));
  return hand_made::fuse(*method->make_server(), uploads);
}

std::vector<float> all_scores(const TsetlinModel& model) {
  ThreadPool pool(1);
  return model.scores(hand_made::images(kWidth, model.class_count(), hand_made::all_images(kWidth)), pool);
}

// The pairs that each holder keeps: docs/methods/fedtm-bank.md. Holder i's j-th pair is worth trust / j; the
// most valuable ones are kept, the earlier holder's among equals.
std::vector<size_t> shares(const std::vector<Holder>& holders, size_t pairs) {
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
      const auto heaviest = std::max_element(
          own.begin(), own.end(), [&](size_t a, size_t b) { return bank.weights[a] < bank.weights[b]; });
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

std::vector<size_t> random_clause(RandomStream& random) {
  std::vector<size_t> literals;
  for (size_t literal = 0; literal < kLiterals; ++literal) {
    if (random.below(5) == 0) literals.push_back(literal);
  }
  return literals;
}

Bank random_bank(uint16_t label, size_t clauses, RandomStream& random) {
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
Familiar random_familiar(size_t clauses, RandomStream& random) {
  Familiar familiar;
  for (size_t i = 0; i < clauses / 4; ++i) {
    familiar.weights.push_back(1 + static_cast<int32_t>(random.below(40)));
    familiar.clauses.push_back(random_clause(random));
    if (familiar.clauses.back().empty()) familiar.clauses.back() = {random.below(kLiterals)};
  }
  familiar.mean = static_cast<float>(40 * random.uniform());
  return familiar;
}

TEST(FedtmBankTest, FoldedScoreIsTheFormula) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    RandomStream random({seed, "fedtm-bank-test"});
    constexpr size_t kClauses = 12;
    // Client i lacks class i: every class has three holders of four.
    Clients clients(4);
    std::map<uint16_t, std::vector<Holder>> holders;
    for (size_t client = 0; client < clients.size(); ++client) {
      for (uint16_t label = 0; label < 4; ++label) {
        if (label == client) continue;
        clients[client].push_back(random_bank(label, kClauses, random));
        holders[label].push_back({clients[client].back()});
      }
    }
    const int models = 1 + static_cast<int>(seed % 3);
    const int threshold = 25;  // about a third of the spreads, from 5 to 55, lie below
    const auto model = fold(clients, 4, models, threshold);
    ASSERT_EQ(model->members().size(), 1u);
    EXPECT_LE(model->members()[0].clauses, models * kClauses);
    const std::vector<float> scores = all_scores(*model);
    const auto images = hand_made::all_images(kWidth);
    for (size_t i = 0; i < images.size(); ++i) {
      for (uint16_t label = 0; label < 4; ++label) {
        const auto fires_for = [&](const std::vector<size_t>& clause) { return fires(clause, images[i]); };
        EXPECT_NEAR(scores[i * 4 + label],
                    naive_score(holders[label], models * kClauses, threshold, fires_for), 1e-5);
      }
    }
  }
}

// One machine of a composite over images of kWidth pixels in a row; a patch of the whole width is flat.
struct Machine {
  size_t patch;
  size_t clauses;
  int threshold;
  double models;
};

// Whether a clause holds in any patch, by the definition: the literals are the thermometer of the patch's
// position, its pixels, and the negations of both. An empty clause is silent.
bool fires_somewhere(const std::vector<size_t>& literals, const std::vector<int>& image, size_t patch) {
  const size_t positions = image.size() - patch + 1;
  const auto holds_at = [&](size_t x) {
    std::vector<int> features;
    for (size_t t = 0; t + 1 < positions; ++t) features.push_back(x > t);
    features.insert(features.end(), image.begin() + static_cast<std::ptrdiff_t>(x),
                    image.begin() + static_cast<std::ptrdiff_t>(x + patch));
    return fires(literals, features);
  };
  for (size_t x = 0; x < positions; ++x) {
    if (holds_at(x)) return true;
  }
  return false;
}

// What a client says of one machine.
struct Said {
  std::vector<Bank> banks;
  Familiar familiar;
};

// The unfolded form: every holder's own pruned bank, its sum put into the common unit, and the trusted mean
// over the holders, each step as docs/methods/fedtm-bank.md has it and none of it folded.
double unfolded_score(const Machine& machine, double models, const std::vector<Said>& clients, uint16_t label,
                      const std::vector<int>& image) {
  std::vector<Holder> taught;
  std::vector<Holder> alone;
  for (const Said& said : clients) {
    for (const Bank& bank : said.banks) {
      if (bank.label != label || bank.positive_mean <= bank.negative_mean) continue;
      (said.banks.size() > 1 ? taught : alone).push_back({bank, said.familiar});
    }
  }
  const auto fires_for = [&](const std::vector<size_t>& clause) {
    return fires_somewhere(clause, image, machine.patch);
  };
  const auto budget = static_cast<size_t>(models * static_cast<double>(machine.clauses));
  return naive_score(taught.empty() ? alone : taught, budget, machine.threshold, fires_for);
}

std::string recipe_of(const std::vector<Machine>& machines) {
  std::string text = "[model]\nname = \"ctm-composite\"\n";
  std::string models;
  for (const Machine& machine : machines) {
    text += fmt::format("[[model.member]]\nclauses = {}\nthreshold = {}\npatch = [1, {}]\n", machine.clauses,
                        machine.threshold, machine.patch);
    models += fmt::format("{}{}", models.empty() ? "" : ", ", machine.models);
  }
  if (machines.size() > 1) models = "[" + models + "]";
  return text + "[method]\nname = \"fedtm-bank\"\nserver_models = " + models + "\n";
}

PatchShape shape_of(const Machine& machine) {
  return {1, kWidth, 1, 1, machine.patch};
}

// The number of machines of every kind that has the bytes of these: a clause takes four and a bit a literal.
double even_models(const std::vector<Machine>& machines) {
  double bytes = 0;
  double one_of_each = 0;
  for (const Machine& machine : machines) {
    const double clause = 4 + std::ceil(static_cast<double>(shape_of(machine).literals()) / 8);
    bytes += machine.models * static_cast<double>(machine.clauses) * clause;
    one_of_each += static_cast<double>(machine.clauses) * clause;
  }
  return bytes / one_of_each;
}

// One upload of a client that has something to say for each machine.
State upload_of_all(const std::vector<Machine>& machines, const std::vector<Said>& said) {
  const auto upload_by = [&](size_t s) {
    return upload_of(said[s].banks, clause_layout(shape_of(machines[s]), {}), said[s].familiar);
  };
  State upload = upload_by(0);
  for (size_t s = 1; s < machines.size(); ++s) {
    const State other = upload_by(s);
    for (Tensor tensor : other.tensors()) {
      if (!tensor.name.starts_with("0.")) continue;
      tensor.name[0] = static_cast<char>('0' + s);
      upload.add(std::move(tensor));
    }
  }
  return upload;
}

// Five classes. Client i lacks class i; the last one has seen nothing but class 0. Some banks cannot tell
// their class from others. All machines of a client have seen the same samples.
std::vector<std::vector<Said>> random_federation(const std::vector<Machine>& machines, uint64_t seed) {
  RandomStream random({seed, "unfolded"});
  std::vector<std::vector<Said>> by_machine(machines.size(), std::vector<Said>(6));
  for (size_t client = 0; client < 6; ++client) {
    for (size_t s = 0; s < machines.size(); ++s)
      by_machine[s][client].familiar = random_familiar(machines[s].clauses, random);
    for (uint16_t label = 0; label < 5; ++label) {
      if (client < 5 ? label == client : label != 0) continue;
      const uint32_t samples = 1 + random.below(900);
      for (size_t s = 0; s < machines.size(); ++s) {
        Bank bank = random_bank(label, machines[s].clauses, random);
        bank.samples = samples;
        if (client % 4 == 2 && random.below(3) == 0) bank.positive_mean = bank.negative_mean - 1;
        by_machine[s][client].banks.push_back(bank);
      }
    }
  }
  return by_machine;
}

// What rounding may change: half a unit of the integers for every clause and for the bias, and what a float
// keeps of a machine's sum and of the sum over machines.
double rounding_bound(const TsetlinMember& member, double score) {
  return (static_cast<double>(member.clauses) + 1) / 2 / member.scale + std::abs(score) * 0x1p-22;
}

// The one machine that the server makes says what the holders' banks say, for one machine and for composites,
// and chooses the same class wherever the two best scores differ by more than the rounding.
TEST(FedtmBankTest, FoldedEqualsUnfoldedWithinItsRounding) {
  const std::vector<std::vector<Machine>> models = {
      {{.patch = 4, .clauses = 12, .threshold = 25, .models = 2}},
      {{.patch = 2, .clauses = 20, .threshold = 10, .models = 0.5}},
      {{.patch = 2, .clauses = 12, .threshold = 25, .models = 1.5},
       {.patch = 4, .clauses = 30, .threshold = 5, .models = 1},
       {.patch = 2, .clauses = 8, .threshold = 40, .models = 4}}};
  const auto images = hand_made::all_images(kWidth);
  size_t decided = 0;
  size_t samples = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    for (const std::vector<Machine>& machines : models) {
      const std::vector<std::vector<Said>> said = random_federation(machines, seed);
      std::vector<State> uploads;
      for (size_t client = 0; client < 6; ++client) {
        std::vector<Said> own;
        for (const std::vector<Said>& of_machine : said) own.push_back(of_machine[client]);
        uploads.push_back(upload_of_all(machines, own));
      }
      const auto method = hand_made::method_of(recipe_of(machines), hand_made::images(kWidth, 5));
      const auto model = hand_made::fuse(*method->make_server(), uploads);
      ASSERT_EQ(model->members().size(), machines.size());
      ThreadPool pool(1);
      const Dataset data = hand_made::images(kWidth, 5, images);
      const std::vector<float> folded = model->scores(data, pool);
      const std::vector<uint16_t> chosen = predict(*model, data, pool);
      for (size_t i = 0; i < images.size(); ++i, ++samples) {
        std::vector<double> unfolded(5);
        double bound = 0;
        for (uint16_t label = 0; label < 5; ++label) {
          double own_bound = 0;
          for (size_t s = 0; s < machines.size(); ++s) {
            const double score =
                unfolded_score(machines[s], even_models(machines), said[s], label, images[i]);
            unfolded[label] += score;
            own_bound += rounding_bound(model->members()[s], score);
          }
          ASSERT_LT(own_bound, 1e-4);
          ASSERT_NEAR(folded[i * 5 + label], unfolded[label], own_bound) << seed << " " << i << " " << label;
          bound = std::max(bound, own_bound);
        }
        const auto best = std::max_element(unfolded.begin(), unfolded.end());
        const auto label = static_cast<uint16_t>(best - unfolded.begin());
        const double most = *best;
        *best = -1e9;
        if (most - *std::max_element(unfolded.begin(), unfolded.end()) <= 2 * bound) continue;
        ++decided;
        EXPECT_EQ(chosen[i], label);
      }
    }
  }
  EXPECT_GT(decided, samples * 9 / 10);
}

// A quarter of a machine of twelve clauses: three, of which a pair fits. Never less than a pair.
TEST(FedtmBankTest, FractionsOfAMachine) {
  RandomStream random({5, "fraction"});
  const std::vector<State> uploads = {
      upload_of({random_bank(0, 12, random), random_bank(1, 12, random)}, kLiterals)};
  const auto clauses = [&](double models) {
    const std::vector<Machine> machine = {{.patch = 4, .clauses = 12, .threshold = 5, .models = models}};
    const auto method = hand_made::method_of(recipe_of(machine), hand_made::images(kWidth, 2));
    return hand_made::fuse(*method->make_server(), uploads)->members()[0].clauses;
  };
  EXPECT_EQ(clauses(0.25), 2u);
  EXPECT_EQ(clauses(0.5), 6u);
  EXPECT_EQ(clauses(0.02), 2u);
}

// Weight 1/2 at a hundred samples, 3/4 at three hundred: of the one holder's view 2/5, of the other's 3/5.
TEST(FedtmBankTest, ScoreByHand) {
  const Bank other{.label = 1, .samples = 1, .weights = {1, 1}, .clauses = {{0}, {1}}};
  const Bank small{.label = 0, .samples = 100, .weights = {10, 1}, .clauses = {{0}, {}}, .positive_mean = 10};
  const Bank large{.label = 0,
                   .samples = 300,
                   .weights = {6, 1},
                   .clauses = {{1}, {}},
                   .positive_mean = 4,
                   .negative_mean = -4};
  const auto model = fold({{small, other}, {large, other}}, 2, 2);
  const std::vector<float> scores = all_scores(*model);
  const auto score = [&](size_t image) { return scores[2 * image]; };  // bit i of the image: pixel i
  EXPECT_NEAR(score(0), 0.4 * (0.0 - 0.5) + 0.6 * (0.5 - 0.5), 1e-6);
  EXPECT_NEAR(score(1), 0.4 * (1.0 - 0.5) + 0.6 * (0.5 - 0.5), 1e-6);
  EXPECT_NEAR(score(2), 0.4 * (0.0 - 0.5) + 0.6 * (1.25 - 0.5), 1e-6);
  EXPECT_NEAR(score(3), 0.4 * (1.0 - 0.5) + 0.6 * (1.25 - 0.5), 1e-6);
}

// Once a bank is whole, what is left of the room goes to familiar clauses. A holder that knows pixel 2, or
// pixel 3 with twice the weight, and on average half of what both weigh together: where neither is there, a
// fifth is lost.
TEST(FedtmBankTest, FamiliarSamplesByHand) {
  const auto bank = [](uint16_t label, size_t literal) {
    return Bank{.label = label,
                .samples = 100,
                .weights = std::vector<int32_t>(8, 5),
                .clauses = {{literal}, {}, {literal}, {}, {}, {}, {}, {}},
                .positive_mean = 10};
  };
  const Familiar familiar{.weights = {20, 10}, .clauses = {{3}, {2}}, .mean = 15};
  const std::vector<State> uploads = {upload_of({bank(0, 0), bank(1, 1)}, kLiterals, familiar)};
  const auto scores = [&](int models) {
    const auto method = hand_made::method_of(recipe(8, models), hand_made::images(kWidth, 3));
    return all_scores(*hand_made::fuse(*method->make_server(), uploads));
  };
  const std::vector<float> roomy = scores(2);
  const auto score = [&](size_t image) { return roomy[3 * image]; };  // bit i of the image: pixel i
  EXPECT_NEAR(score(1), 0.5 - 0.1, 1e-6);
  EXPECT_NEAR(score(1 + 4), 0.5 + 0.1 * (10.0 / 15 - 1), 1e-6);
  EXPECT_NEAR(score(1 + 8), 0.5 + 0.1 * (20.0 / 15 - 1), 1e-6);
  EXPECT_NEAR(score(4 + 8), -0.5 + 0.1 * (30.0 / 15 - 1), 1e-6);
  EXPECT_NEAR(scores(1)[3 * 1], 0.5, 1e-6);  // no room for them
}

// 0 is said of the class that a holder tells apart worst, not of its others on average.
TEST(FedtmBankTest, TheHardestClassIsTheOther) {
  const Bank other{.label = 1, .samples = 1, .weights = {1, 1}, .clauses = {{3}, {}}};
  const Bank bank{.label = 0,
                  .samples = 100,
                  .weights = {10, 4},
                  .clauses = {{0}, {1}},
                  .positive_mean = 10,
                  .negative_mean = -4,
                  .hardest_excess = 6};
  const std::vector<float> scores = all_scores(*fold({{bank, other}}, 2, 1));
  EXPECT_NEAR(scores[2 * 1], (10.0 - 2) / 8 - 0.5, 1e-6);
  EXPECT_NEAR(scores[2 * 2], (-4.0 - 2) / 8 - 0.5, 1e-6);
  // A client that claims another class to be harder than its own is high cannot push the class down by that.
  Bank liar = bank;
  liar.hardest_excess = 1e6;
  EXPECT_NEAR(all_scores(*fold({{liar, other}}, 2, 1))[2 * 1], (10.0 - 10) / 1 - 0.5, 1e-6);
}

// Three holders, six clauses, one model: one clause of each polarity for each.
TEST(FedtmBankTest, PruningKeepsTheHeaviestOfEachPolarity) {
  const Bank bank{
      .label = 0, .samples = 100, .weights = {3, 9, 7, 8, 7, 10}, .clauses = {{0}, {1}, {2}, {3}, {4}, {}}};
  const Bank other{
      .label = 1, .samples = 1, .weights = {1, 1, 1, 1, 1, 1}, .clauses = {{0}, {}, {}, {}, {}, {}}};
  const auto three = fold({{bank, other}, {bank, other}, {bank, other}}, 2, 1);
  const TsetlinMember& member = three->members()[0];
  // For: clause 2 (7, the lower of two equals). Against: clause 1 (9), since 10 is empty.
  ASSERT_EQ(member.clauses, 6u);
  for (const size_t holder : {0u, 1u, 2u}) {
    EXPECT_THAT(literals_of(member, 0, 2 * holder), ElementsAre(2));
    EXPECT_THAT(literals_of(member, 0, 2 * holder + 1), ElementsAre(1));
  }
  // What is left for, 7 of 3, 7 and 7 to the power of 3/2, is 0.43849; against, 9 of 9 and 8, 0.54405. T,
  // which is 1, shrinks to their mean and is more than mu+ times 0.43849.
  EXPECT_NEAR(member.weights[0] / member.scale, 7.0 / 3 / 0.49127, 1e-4);
  EXPECT_NEAR(member.weights[1] / member.scale, -9.0 / 3 / 0.49127, 1e-4);
  // Alone it has room for all: the five that are not empty.
  const auto one = fold({{bank, other}}, 2, 1);
  EXPECT_EQ(one->members()[0].clauses, 5u);
}

// Trusts of 3/4, 1/2 and 1/101 share four pairs: three (3/4, 3/8 and 1/4 a pair, the first of two equals),
// one, and none. A bank of two pairs can take no third one: it goes to the second.
TEST(FedtmBankTest, TheBudgetIsSharedByTrust) {
  const auto holder = [](uint32_t samples, size_t literal, size_t clauses) {
    const auto bank = [&](uint16_t label) {
      return Bank{.label = label,
                  .samples = samples,
                  .weights = std::vector<int32_t>(clauses, 2),
                  .clauses = std::vector<std::vector<size_t>>(clauses, {literal})};
    };
    return std::vector<Bank>{bank(0), bank(1)};
  };
  const auto kept = [&](size_t clauses, int models) {
    const auto model =
        fold({holder(300, 0, clauses), holder(100, 1, clauses), holder(1, 2, clauses)}, 2, models);
    std::vector<size_t> counts(3);
    const TsetlinMember& member = model->members()[0];
    for (size_t clause = 0; clause < member.clauses; ++clause) ++counts[literals_of(member, 0, clause).at(0)];
    return counts;
  };
  EXPECT_THAT(kept(8, 1), ElementsAre(6, 2, 0));
  EXPECT_THAT(kept(4, 2), ElementsAre(4, 4, 0));
  EXPECT_THAT(kept(4, 3), ElementsAre(4, 4, 4));
}

// What pruning takes from the sums it takes from mu+ and mu- too: with half the weight of each polarity gone,
// a sample on which all that is left for the class fires still scores as one of the holder's own.
TEST(FedtmBankTest, CalibrationFollowsThePruning) {
  const Bank bank{.label = 0,
                  .samples = 100,
                  .weights = {30, 20, 30, 20},
                  .clauses = {{0}, {1}, {0}, {1}},
                  .positive_mean = 60,
                  .negative_mean = -40};
  Bank other = bank;
  other.label = 1;
  for (const int models : {1, 2}) {  // two holders: half of each bank, or all of it
    const std::vector<float> scores = all_scores(*fold({{bank, other}, {bank, other}}, 2, models));
    EXPECT_NEAR(scores[2 * 1], 0.5, 1e-5) << models;   // pixel 0 alone
    EXPECT_NEAR(scores[2 * 2], -0.5, 1e-5) << models;  // pixel 1 alone
  }
}

TEST(FedtmBankTest, HoldersWithoutNegativesSpeakOnlyIfNobodyElseDoes) {
  const Bank other{.label = 1, .samples = 50, .weights = {1, 1}, .clauses = {{3}, {}}};
  const Bank taught{.label = 0, .samples = 50, .weights = {2, 1}, .clauses = {{0}, {}}, .positive_mean = 2};
  const Bank alone{.label = 0, .samples = 5000, .weights = {4, 1}, .clauses = {{1}, {}}, .positive_mean = 4};
  const std::vector<float> both = all_scores(*fold({{taught, other}, {alone}}, 2, 4));
  const std::vector<float> only = all_scores(*fold({{taught, other}}, 2, 4));
  EXPECT_EQ(both, only);
  // Class 0 held by single-class clients alone: image 2 has only pixel 1.
  const Bank elsewhere{.label = 1, .samples = 50, .weights = {1, 1}, .clauses = {{3}, {}}};
  const std::vector<float> single = all_scores(*fold({{alone}, {elsewhere}}, 2, 4));
  EXPECT_NEAR(single[2 * 2], 0.5, 1e-6);
  EXPECT_NEAR(single[2 * 1], -0.5, 1e-6);
}

// A holder whose positives do not outvote its negatives cannot be calibrated.
TEST(FedtmBankTest, HoldersThatCannotTellAreLeftOut) {
  const Bank other{.label = 1, .samples = 50, .weights = {1, 1}, .clauses = {{3}, {}}};
  const Bank good{.label = 0, .samples = 50, .weights = {2, 1}, .clauses = {{0}, {}}, .positive_mean = 2};
  Bank bad{.label = 0, .samples = 5000, .weights = {4, 1}, .clauses = {{1}, {}}, .positive_mean = 3};
  for (const float negative_mean : {3.0f, 4.0f}) {
    bad.negative_mean = negative_mean;
    EXPECT_EQ(all_scores(*fold({{good, other}, {bad, other}}, 2, 4)),
              all_scores(*fold({{good, other}, {other}}, 2, 4)));
  }
}

// Class 0's one clause votes against with fifty times the spread: it scores far below any fixed floor.
// Class 1 is nobody's, class 2's only holder cannot tell it from others.
TEST(FedtmBankTest, AClassThatNobodySpeaksForNeverWins) {
  const Bank harsh{.label = 0,
                   .samples = 100,
                   .weights = {1, 100},
                   .clauses = {{0}, {1}},
                   .positive_mean = 1,
                   .negative_mean = -1};
  const Bank blind{.label = 2,
                   .samples = 100,
                   .weights = {1, 1},
                   .clauses = {{0}, {1}},
                   .positive_mean = -1,
                   .negative_mean = 1};
  const Bank empty{.label = 3, .samples = 100, .weights = {1, 1}, .clauses = {{}, {}}};
  const auto model = fold({{harsh, blind, empty}}, 5, 1);
  ThreadPool pool(1);
  const Dataset data = hand_made::images(kWidth, 5, hand_made::all_images(kWidth));
  EXPECT_THAT(predict(*model, data, pool), testing::Each(0));
  // And the scores of the class that is spoken for stay what they are: image 2 has only pixel 1.
  EXPECT_NEAR(all_scores(*model)[2 * 5], (-100.0 + 1) / 2 - 0.5, 1e-4);
}

// A composite in which one machine cannot tell class 1 from others and the other can: it may still win.
TEST(FedtmBankTest, OneSilentMachineDoesNotSilenceTheOthers) {
  const std::string composite =
      "[model]\nname = \"ctm-composite\"\n"
      "[[model.member]]\nclauses = 2\nthreshold = 1\npatch = [1, 4]\n"
      "[[model.member]]\nclauses = 2\nthreshold = 1\npatch = [1, 4]\n"
      "[method]\nname = \"fedtm-bank\"\n";
  // Class 0 wants pixel 0 and has a vote of -100 against pixel 1; class 1 wants pixel 1, class 2 is nobody's.
  const std::vector<Bank> banks = {
      {.label = 0, .samples = 100, .weights = {1, 100}, .clauses = {{0}, {1}}, .positive_mean = 1},
      {.label = 1, .samples = 100, .weights = {1, 1}, .clauses = {{1}, {0}}, .positive_mean = 1}};
  std::vector<Bank> blind = banks;
  blind[1].positive_mean = -1;
  State upload = upload_of(banks, kLiterals);
  const State second = upload_of(blind, kLiterals);
  for (Tensor tensor : second.tensors()) {
    if (!tensor.name.starts_with("0.")) continue;
    tensor.name[0] = '1';
    upload.add(std::move(tensor));
  }
  const auto method = hand_made::method_of(composite, hand_made::images(kWidth, 3));
  const auto model = hand_made::fuse(*method->make_server(), {upload});
  ThreadPool pool(1);
  const Dataset data = hand_made::images(kWidth, 3, {{1, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 0}});
  EXPECT_THAT(predict(*model, data, pool), ElementsAre(0, 1, 1));
}

// Room for two clauses: only the holder with the most samples keeps its pair; the lower client of equals.
TEST(FedtmBankTest, MoreHoldersThanBudget) {
  const auto holder = [](uint32_t samples, size_t literal) {
    return std::vector<Bank>{
        {.label = 0, .samples = samples, .weights = {2, 3}, .clauses = {{literal}, {literal + 4}}},
        {.label = 1, .samples = 1, .weights = {1, 1}, .clauses = {{0}, {}}}};
  };
  const auto model = fold({holder(10, 0), holder(30, 1), holder(30, 2), holder(20, 3)}, 2, 1);
  const TsetlinMember& member = model->members()[0];
  ASSERT_EQ(member.clauses, 2u);
  EXPECT_THAT(literals_of(member, 0, 0), ElementsAre(1));
  EXPECT_THAT(literals_of(member, 0, 1), ElementsAre(5));
  EXPECT_NEAR(member.weights[0] / member.scale, 2, 1e-6);
}

TEST(FedtmBankTest, OrderOfArrivalDoesNotMatter) {
  RandomStream random({7, "order"});
  std::vector<State> uploads;
  for (int i = 0; i < 4; ++i) {
    uploads.push_back(upload_of({random_bank(0, 6, random), random_bank(2, 6, random)}, kLiterals));
  }
  const auto method = hand_made::method_of(recipe(6, 1), hand_made::images(kWidth, 3));
  const auto forward = method->make_server();
  const auto backward = method->make_server();
  for (uint32_t i = 0; i < 4; ++i) forward->accept(i, uploads[i]);
  for (uint32_t i = 4; i-- > 0;) backward->accept(i, uploads[i]);
  forward->finish_round(1);
  backward->finish_round(1);
  EXPECT_EQ(forward->model()->state(), backward->model()->state());
}

// Clients that all say the same are one client, as long as the budget leaves their banks whole.
TEST(FedtmBankTest, IdenticalClientsAreAFixedPoint) {
  RandomStream random({8, "same"});
  const std::vector<Bank> banks = {random_bank(0, 6, random), random_bank(1, 6, random)};
  const std::vector<float> one = all_scores(*fold({banks}, 2, 1));
  const std::vector<float> three = all_scores(*fold({banks, banks, banks}, 2, 3));
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], three[i], 1e-5);
}

}  // namespace
}  // namespace bitfed
