#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/base/byte_io.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/federated/privacy/accountant.h"
#include "bitfed/report/charts/charts.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/pages/aligned.h"
#include "cli/commands.h"

namespace bitfed::cli {
namespace {

struct PlanArguments {
  std::string recipe;
  std::vector<std::string> overrides;
  std::string data_dir;
  std::string out = "privacy-plan.svg";
  double delta = 1e-5;
  bool served = false;
};

// What a plan is about: the recipe's clients and how they are drawn.
struct Plan {
  std::string name;
  Sampling sampling;
  uint64_t values = 0;  // of a model, each of which gets noise
  double delta = 1e-5;
  std::optional<DifferentialPrivacy> privacy;

  // That a client takes part in a round, as the accountant counts it.
  double probability() const { return privacy ? privacy->release.sampling : sampling.probability(); }
  bool clients_add_noise() const { return privacy && privacy->noise_clients > 0; }
};

Plan read_plan(const PlanArguments& arguments) {
  Config recipe = Config::load(arguments.recipe);
  recipe.set_all(arguments.overrides);
  const Experiment experiment =
      load_experiment(recipe, arguments.data_dir, std::filesystem::path(arguments.recipe).stem().string(),
                      arguments.served ? ClientsAre::kReal : ClientsAre::kSimulated);
  Plan plan{.name = experiment.name,
            .sampling = {experiment.clients, experiment.clients_per_round, experiment.rounds},
            .delta = arguments.delta,
            .privacy = experiment.differential_privacy};
  if (plan.privacy) plan.delta = plan.privacy->delta;
  const State state = experiment.method->make_server()->save();
  for (const Tensor& tensor : state.tensors()) plan.values += tensor.elements();
  return plan;
}

// 1, 2, 5, 10, … and the recipe's last round.
std::vector<uint64_t> milestones(uint64_t rounds) {
  std::vector<uint64_t> result;
  for (uint64_t unit = 1; unit < rounds; unit *= 10) {
    for (const uint64_t factor : {1, 2, 5}) {
      if (unit * factor < rounds) result.push_back(unit * factor);
    }
  }
  result.push_back(rounds);
  return result;
}

// The targets of a plan, and the epsilon of the recipe where it has another.
std::vector<double> noises(const Plan& plan, const std::vector<double>& targets) {
  std::vector<double> result;
  for (const double epsilon : targets)
    result.push_back(noise_for(epsilon, plan.delta, plan.probability(), plan.sampling.rounds));
  if (plan.privacy) result.push_back(plan.privacy->release.noise_multiplier);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::string epsilon_text(double epsilon) {
  return fmt::format("{:.2f}", epsilon);
}

double cost(const Plan& plan, double noise, uint64_t rounds) {
  return epsilon_of({noise, plan.probability()}, rounds, plan.delta);
}

void print_targets(const Plan& plan, const std::vector<double>& multipliers) {
  TextRows rows = {{"noise multiplier", "epsilon", "known draws", "noise / update"}};
  for (const double noise : multipliers) {
    const auto clients = static_cast<double>(plan.sampling.clients_per_round);
    const double shares = plan.clients_add_noise() ? clients / plan.privacy->noise_clients : 1;
    const double per_client = noise * std::sqrt(shares * static_cast<double>(plan.values)) / clients;
    rows.push_back({fmt::format("{:.3f}", noise), epsilon_text(cost(plan, noise, plan.sampling.rounds)),
                    epsilon_text(epsilon_of({noise, 1}, plan.sampling.rounds, plan.delta)),
                    fmt::format("{:.2f}", per_client)});
  }
  fmt::print("{}\n", aligned(rows));
}

void print_rounds(const Plan& plan, const std::vector<double>& multipliers) {
  TextRows rows = {{"epsilon after round"}};
  for (const double noise : multipliers) rows[0].push_back(fmt::format("noise {:.3f}", noise));
  for (const uint64_t round : milestones(plan.sampling.rounds)) {
    rows.push_back({std::to_string(round)});
    for (const double noise : multipliers) rows.back().push_back(epsilon_text(cost(plan, noise, round)));
  }
  fmt::print("{}\n", aligned(rows));
}

std::string picture(const Plan& plan, const std::vector<double>& multipliers) {
  constexpr uint64_t kPoints = 60;
  LineChart chart{fmt::format("{}: epsilon over rounds", plan.name),
                  fmt::format("epsilon (delta {}) over rounds", plan.delta),
                  {},
                  /*is_fraction=*/false};
  const uint64_t step = std::max<uint64_t>(1, plan.sampling.rounds / kPoints);
  for (const double noise : multipliers) {
    Series series{fmt::format("noise multiplier {:.3f}", noise), {}};
    for (uint64_t round = 0; round <= plan.sampling.rounds; round += step)
      series.points.push_back({static_cast<double>(round), cost(plan, noise, round)});
    chart.series.push_back(std::move(series));
  }
  return line_chart(chart);
}

void print_recipe(const Plan& plan) {
  if (!plan.privacy) {
    fmt::print("The recipe has no [privacy] clip: its models are not private at all.\n\n");
    return;
  }
  const DifferentialPrivacy& privacy = *plan.privacy;
  fmt::print("The recipe: clip {}, noise multiplier {:.3f}, epsilon {:.2f} after all {} rounds", privacy.clip,
             privacy.release.noise_multiplier,
             cost(plan, privacy.release.noise_multiplier, plan.sampling.rounds), plan.sampling.rounds);
  if (privacy.max_epsilon) {
    const uint64_t within =
        releases_within(*privacy.max_epsilon, privacy.delta, privacy.release, plan.sampling.rounds);
    fmt::print("; it stops at epsilon {} after round {}", *privacy.max_epsilon, within);
  }
  fmt::print(".\n");
  if (plan.clients_add_noise()) {
    fmt::print(
        "Clients add the noise: sums of at least {} of {} are opened, and sampling is not counted, since the "
        "server knows who was drawn.\n",
        privacy.noise_clients, plan.sampling.clients_per_round);
  }
  fmt::print("\n");
}

void print_plan(const PlanArguments& arguments) {
  const Plan plan = read_plan(arguments);
  fmt::print("{}: {} clients, each in a round with probability {:.4g}; {} rounds; delta {}; {} values\n\n",
             plan.name, plan.sampling.clients, plan.sampling.probability(), plan.sampling.rounds, plan.delta,
             exact_count(plan.values));
  print_recipe(plan);
  const std::vector<double> multipliers = noises(plan, {1, 2, 4, 8});
  print_targets(plan, multipliers);
  print_rounds(plan, multipliers);
  fmt::print(
      "known draws: epsilon against somebody who knows who took part in each round, as the server does.\n"
      "noise / update: length of the noise over that of the mean update, if all clients' updates have the\n"
      "length of the clip and agree. Above 1 a round is mostly noise.\n");
  write_file_atomically(arguments.out, std::string_view(picture(plan, multipliers)));
  fmt::print(stderr, "wrote {}\n", arguments.out);
}

struct EpsilonArguments {
  double noise = 1;
  double sampling = 1;
  uint64_t rounds = 1;
  double delta = 1e-5;
};

void add_plan(Command& privacy) {
  auto arguments = std::make_shared<PlanArguments>();
  Command* command =
      privacy.add_subcommand("plan", "What a recipe's rounds cost, and the noise for a target");
  command->add_option("RECIPE", arguments->recipe, "The recipe")->required()->type_name("FILE.toml");
  command->add_option("--set", arguments->overrides, "Override one value of the recipe (repeatable)")
      ->type_name("KEY=VALUE")
      ->one_at_a_time();
  command->add_option("--delta", arguments->delta, "Where the recipe has none")
      ->between(1e-15, 0.5)
      ->show_default();
  command->add_option("--out", arguments->out, "The picture to write")->type_name("FILE.svg")->show_default();
  command->add_option("--data-dir", arguments->data_dir, "Where to look for data first")->type_name("DIR");
  command->add_flag("--serve", arguments->served, "The recipe is one for bitfed serve");
  command->footer(
      "Nothing is trained. Example:\n"
      "  bitfed privacy plan recipes/health-hapt.toml --set privacy.clip=1 --set privacy.epsilon=8");
  command->callback([arguments] { print_plan(*arguments); });
}

void add_epsilon(Command& privacy) {
  auto arguments = std::make_shared<EpsilonArguments>();
  Command* command = privacy.add_subcommand("epsilon", "The accountant alone: what rounds of noise cost");
  command->add_option("--noise-multiplier", arguments->noise, "Noise over clip")
      ->required()
      ->between(0.01, 1e4);
  command->add_option("--sampling", arguments->sampling, "With which probability a client is in a round")
      ->between(1e-9, 1.0)
      ->show_default();
  command->add_option("--rounds", arguments->rounds, "How many rounds")->show_default();
  command->add_option("--delta", arguments->delta, "Of (epsilon, delta)")
      ->between(1e-15, 0.5)
      ->show_default();
  command->callback([arguments] {
    fmt::print("{:.6f}\n",
               epsilon_of({arguments->noise, arguments->sampling}, arguments->rounds, arguments->delta));
  });
}

}  // namespace

void add_privacy(Command& app) {
  Command* privacy = app.add_subcommand(
      "privacy", "What a model gives away: plan the noise of differential privacy, audit a run");
  add_plan(*privacy);
  add_epsilon(*privacy);
  add_privacy_audit(*privacy);
}

}  // namespace bitfed::cli
