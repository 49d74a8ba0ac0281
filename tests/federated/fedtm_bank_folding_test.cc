// fedtm-bank folds calibrated banks into one machine: its scores are those of the banks before folding.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/federated/hand_made_banks.h"

namespace bitfed {
namespace {

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

// Twenty-four holders of each class and room for all their clauses. Clients that have seen all classes, and
// clients that lack one; flat machines, and convolutional ones, where literals count.
TEST(FedtmBankTest, FoldedScoreOfManyHoldersIsTheFormula) {
  constexpr size_t kClasses = 3;
  const auto images = hand_made::all_images(kWidth);
  for (const bool complete : {true, false}) {
    for (const size_t patch : {size_t{2}, kWidth}) {
      RandomStream random({patch, "many-holders"});
      const Machine machine = {.patch = patch, .clauses = 12, .threshold = 25, .models = 36};
      std::vector<std::vector<Holder>> holders(kClasses);
      std::vector<State> uploads;
      for (size_t client = 0; client < (complete ? 24 : 36); ++client) {
        std::vector<Bank> banks;
        for (uint16_t label = 0; label < kClasses; ++label) {
          if (!complete && client % kClasses == label) continue;
          banks.push_back(random_bank(label, machine.clauses, random));
          holders[label].push_back({banks.back()});
        }
        uploads.push_back(upload_of(banks, clause_layout(shape_of(machine), {}),
                                    complete ? Familiar() : random_familiar(machine.clauses, random)));
      }
      const auto method = hand_made::method_of(recipe_of({machine}), hand_made::images(kWidth, kClasses));
      const std::vector<float> scores = [&] {
        const auto model = hand_made::fuse(*method->make_server(), uploads);
        ThreadPool pool(1);
        return model->scores(hand_made::images(kWidth, kClasses, images), pool);
      }();
      const Common common(holders, machine.threshold);
      for (size_t i = 0; i < images.size(); ++i) {
        const auto fires_for = [&](const std::vector<size_t>& clause) {
          return fires_somewhere(clause, images[i], patch);
        };
        for (size_t label = 0; label < kClasses; ++label) {
          EXPECT_NEAR(scores[i * kClasses + label],
                      score_of_many(holders[label], common, complete, machine.threshold,
                                    patch == kWidth ? 0 : 40, fires_for),
                      1e-5);
        }
      }
    }
  }
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

}  // namespace
}  // namespace bitfed
