#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/federated/privacy/membership_audit.h"
#include "bitfed/simulation/experiment.h"
#include "bitfed/zoo/model_file.h"
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/progress.h"
#include "cli/stop.h"

namespace bitfed::cli {
namespace {

namespace fs = std::filesystem;

struct AuditArguments {
  std::string folder;
  std::string out;
  std::string data_dir;
  uint32_t repeats = 4;
  std::string device = "cpu";
  unsigned threads = 0;
  bool json = false;
  bool quiet = false;
};

fs::path out_of(const AuditArguments& arguments) {
  return arguments.out.empty() ? fs::path(arguments.folder) / "audit" : fs::path(arguments.out);
}

// Runs the recipe without those clients, or finds that it has run already. Noise and drawn clients are its
// own: with those of the other repetitions most of the noise would cancel in their comparison, and the attack
// would be on a release with less noise than the recipe's.
ExperimentResult run_without(const AuditArguments& arguments, const std::vector<uint32_t>& withheld,
                             uint32_t repeat, bool has_noise) {
  Config recipe = Config::load(fs::path(arguments.folder) / "recipe.toml");
  recipe.set("federation.without", fmt::format("[{}]", fmt::join(withheld, ", ")));
  if (has_noise) recipe.set("privacy.draw", fmt::format("{}", repeat + 1));
  ExperimentOptions options;
  options.out = out_of(arguments) / fmt::format("run-{}", repeat + 1);
  options.data_dir = arguments.data_dir;
  options.threads = arguments.threads;
  options.trainers = open_device(arguments.device);
  options.version = BITFED_VERSION;
  options.stop = stop_on_signals();
  options.existing = RunFolderWriter::Existing::kResume;
  auto progress = std::make_unique<Progress>(ProgressOptions{.quiet = arguments.quiet});
  return run_experiment(recipe, options, [&](const Event& event) { progress->show(event); });
}

// The repetitions, each with the part of the clients that it trained on and how well its model knows each.
struct Audit {
  std::vector<AuditedModel> models;
  std::optional<double> epsilon, delta;  // of the repetition that spent most
};

Audit audit(const AuditArguments& arguments) {
  const Config recipe = Config::load(fs::path(arguments.folder) / "recipe.toml");
  if (recipe.section("federation").has("without")) {
    throw input_error("{}: found a run without some of its clients, expected one with all of them",
                      arguments.folder);
  }
  const Experiment experiment = load_experiment(recipe, arguments.data_dir, "audit", ClientsAre::kSimulated);
  if (experiment.differential_privacy && experiment.differential_privacy->noise_clients > 0) {
    throw input_error(
        "{}: found noise that clients add, expected the server's: half of the clients are too few for a sum. "
        "Audit a run with --set privacy.secure_aggregation=false --set privacy.noise=server",
        arguments.folder);
  }
  ThreadPool pool(arguments.threads);
  Audit result;
  for (uint32_t repeat = 0; repeat < arguments.repeats; ++repeat) {
    const std::vector<uint32_t> withheld = withheld_clients(experiment.seed, repeat, experiment.clients);
    const ExperimentResult run =
        run_without(arguments, withheld, repeat, experiment.differential_privacy.has_value());
    const ModelFile file = read_model_file(run.folder / "model.safetensors");
    AuditedModel& model = result.models.emplace_back();
    model.is_member.assign(experiment.clients, true);
    for (const uint32_t client : withheld) model.is_member[client] = false;
    model.fit = fit_of_clients(*file.model, experiment.train, experiment.partition, pool);
    if (run.summary.epsilon.value_or(0) > result.epsilon.value_or(-1)) {
      result.epsilon = run.summary.epsilon;
      result.delta = run.summary.delta;
    }
  }
  return result;
}

void run_audit(const AuditArguments& arguments) {
  const Audit done = audit(arguments);
  const AttackResult attack = attack_membership(done.models);
  nlohmann::ordered_json json = {{"repeats", arguments.repeats}, {"guesses", attack.guesses},
                                 {"right", attack.right},        {"advantage", attack.advantage},
                                 {"advantage_low", attack.low},  {"advantage_high", attack.high}};
  if (done.epsilon) {
    json["epsilon"] = *done.epsilon;
    json["delta"] = *done.delta;
    json["advantage_bound"] = advantage_bound(*done.epsilon, *done.delta);
  }
  write_file_atomically(out_of(arguments) / "audit.json", json.dump(1) + "\n");
  if (arguments.json) {
    fmt::print("{}\n", json.dump(1));
    return;
  }
  fmt::print(
      "{} runs of the recipe, each without a random half of its {} clients; the attack guesses who was "
      "in\n",
      arguments.repeats, done.models.front().is_member.size());
  fmt::print("  guesses    {} of {} right\n", attack.right, attack.guesses);
  fmt::print("  advantage  {:.3f}, 95 % interval {:.3f} to {:.3f} (0: coin flips, 1: always right)\n",
             attack.advantage, attack.low, attack.high);
  if (done.epsilon) {
    fmt::print("  bound      {:.3f} by epsilon {:.3f}, delta {}\n",
               advantage_bound(*done.epsilon, *done.delta), *done.epsilon, *done.delta);
  } else {
    fmt::print("  bound      none: the recipe has no [privacy] clip\n");
  }
}

}  // namespace

void add_privacy_audit(Command& privacy) {
  auto arguments = std::make_shared<AuditArguments>();
  Command* command = privacy.add_subcommand("audit", "Attack a run's models: who took part?");
  command->add_option("DIR", arguments->folder, "The folder of a run")->required();
  command->add_option("--repeats", arguments->repeats, "Runs to attack")->between(1, 1000)->show_default();
  command->add_option("--out", arguments->out, "Where these runs go (default: DIR/audit)")->type_name("DIR");
  command->add_option("--data-dir", arguments->data_dir, "Where to look for data first")->type_name("DIR");
  command->add_option("--threads", arguments->threads, "Clients trained at once (default: one per processor)")
      ->between(1, 4096);
  add_device_option(command, &arguments->device);
  command->add_flag("--json", arguments->json, "Print one JSON document");
  command->add_flag("--quiet", arguments->quiet, "No progress");
  command->footer(
      "Repeats the run without a random half of its clients and with noise of its own, and guesses from the\n"
      "model alone who was in: the clients whose own samples it fits better than the other repetitions' models\n"
      "do. An attack that fails proves nothing; one that beats the bound over many repetitions would prove the\n"
      "accounting wrong. The interval takes guesses as independent; those of one repetition share its noise.");
  command->callback([arguments] { run_audit(*arguments); });
}

}  // namespace bitfed::cli
