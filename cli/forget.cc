#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/federated/federation.h"
#include "bitfed/federated/folder_store.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/pages/page.h"
#include "bitfed/run/run_folder.h"
#include "bitfed/simulation/experiment.h"
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/progress.h"
#include "cli/stop.h"

namespace bitfed::cli {
namespace {

namespace fs = std::filesystem;

struct ForgetArguments {
  std::string folder;
  std::vector<std::string> clients;
  std::string out;
  std::string data_dir;
  std::string device = "cpu";
  unsigned threads = 0;
  bool json = false;
  bool quiet = false;
};

// The person of each client; none where clients are not persons.
std::vector<std::string> client_names(const Experiment& experiment) {
  std::vector<std::string> names;
  if (experiment.partition_spec.kind != "column") return names;
  for (const auto& samples : experiment.partition)
    names.push_back(experiment.train.group_names[experiment.train.groups[samples.front()]]);
  return names;
}

uint32_t client_of(const std::string& text, const Experiment& experiment) {
  const std::vector<std::string> names = client_names(experiment);
  if (const auto found = std::find(names.begin(), names.end(), text); found != names.end())
    return static_cast<uint32_t>(found - names.begin());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number < experiment.clients) return number;
  throw input_error("--client {}: expected a number below {}{}{}", text, experiment.clients,
                    names.empty() ? "" : " or a client's name", suggestion(text, names));
}

// The rounds to which an upload of one of the clients was added, after the preparation.
std::set<uint32_t> rounds_with(const fs::path& folder, const std::set<uint32_t>& clients) {
  std::set<uint32_t> rounds;
  const fs::path file = folder / "events.jsonl";
  std::ifstream log(file);
  if (!log) throw input_error("{}: cannot be read", file.string());
  size_t number = 0;
  for (std::string line; std::getline(log, line);) {
    ++number;
    if (log.eof() || line.find(ClientFinished::kKind) == std::string::npos) continue;
    const auto event = parse_event(line, fmt::format("{}: line {}", file.string(), number));
    const auto* finished = event ? std::get_if<ClientFinished>(&*event) : nullptr;
    if (finished != nullptr && finished->round > 0 && clients.contains(finished->client))
      rounds.insert(finished->round);
  }
  return rounds;
}

// With names: a person's may be a number, too, and is often another one than the client's.
std::string who_is(const std::set<uint32_t>& clients, const Experiment& experiment) {
  const std::vector<std::string> names = client_names(experiment);
  std::string text = clients.size() == 1 ? "client" : "clients";
  const char* between = " ";
  for (const uint32_t client : clients) {
    text += std::exchange(between, ", ") + std::to_string(client);
    if (client < names.size()) text += fmt::format(" ('{}')", names[client]);
  }
  return text;
}

// What it takes, and from where it can start.
struct Effort {
  bool fuses_again = false;      // one round, whose uploads are there: nobody trains
  bool from_checkpoint = false;  // the run's checkpoint holds nothing of the clients yet
  uint32_t first_round = 1;      // to repeat
  std::string text;
};

Effort effort_of(const fs::path& folder, const Experiment& experiment, const std::set<uint32_t>& forgotten) {
  const bool prepares = experiment.method->make_server()->needs_preparation();
  const std::string who = who_is(forgotten, experiment);
  if (experiment.rounds == 1 && !prepares && UploadStore(folder / "checkpoint").has_round(1)) {
    return {
        .fuses_again = true,
        .text = fmt::format("{}: one round, its uploads are stored: fused again without it, exactly", who)};
  }
  const std::set<uint32_t> rounds = rounds_with(folder, forgotten);
  const std::optional<State> saved = FolderStore(folder / "checkpoint").load();
  const uint32_t finished = saved ? checkpoint_round(*saved) : 0;
  const uint32_t first = rounds.empty() ? UINT32_MAX : *rounds.begin();
  Effort effort;
  // The preparation asks all clients, so its result holds something of each.
  effort.from_checkpoint = finished > 0 && finished < first && !prepares;
  effort.first_round = effort.from_checkpoint ? finished + 1 : prepares ? 0 : 1;
  effort.text = fmt::format(
      "{}: in {} of {} rounds{}, last checkpoint after round {}: rounds {} to {} are repeated without it",
      who, rounds.size(), experiment.rounds, rounds.empty() ? "" : fmt::format(", first in round {}", first),
      finished, effort.first_round, experiment.rounds);
  return effort;
}

std::string without_text(const Config& recipe, const std::set<uint32_t>& forgotten) {
  std::set<int64_t> without(forgotten.begin(), forgotten.end());
  const Config federation = recipe.section("federation");
  if (federation.has("without")) {
    for (const int64_t client : federation.integers("without", {}, 0, INT32_MAX)) without.insert(client);
  }
  return fmt::format("[{}]", fmt::join(without, ", "));
}

ExperimentOptions options_of(const ForgetArguments& arguments, const std::set<uint32_t>& forgotten) {
  ExperimentOptions options;
  const fs::path folder = fs::path(arguments.folder).lexically_normal();
  const fs::path place = folder.has_filename() ? folder : folder.parent_path();
  options.out = arguments.out.empty()
                    ? fs::path(fmt::format("{}-without-{}", place.string(), fmt::join(forgotten, "-")))
                    : fs::path(arguments.out);
  options.data_dir = arguments.data_dir;
  options.threads = arguments.threads;
  options.trainers = open_device(arguments.device);
  options.version = BITFED_VERSION;
  options.stop = stop_on_signals();
  return options;
}

// A run that goes on from a checkpoint of another: its files are there before it begins.
void copy_checkpoint(const fs::path& from, const fs::path& out) {
  create_folders(out);
  for (const auto& entry : fs::directory_iterator(from / "checkpoint")) {
    const std::string name = entry.path().filename().string();
    if (name == "lock" || name.starts_with("round-")) continue;
    fs::create_directories(out / "checkpoint");
    fs::copy(entry.path(), out / "checkpoint" / name, fs::copy_options::recursive);
  }
}

void print_result(const RunSummary& before, const ExperimentResult& after, const Effort& effort) {
  const auto accuracy = [](const RunSummary& summary) {
    return summary.accuracy ? percent(*summary.accuracy) : std::string("–");
  };
  fmt::print("  before   {}  model {}\n  after    {}  model {}\n", accuracy(before), before.model_sha256,
             accuracy(after.summary), after.summary.model_sha256);
  if (effort.fuses_again)
    fmt::print("  fused in {}\n", human_seconds(after.summary.aggregation_seconds.value_or(0)));
  fmt::print("  folder   {}\n", after.folder.string());
}

void forget(const ForgetArguments& arguments) {
  const fs::path folder = arguments.folder;
  std::error_code code;
  if (fs::exists(folder / "federation.sqlite", code)) {
    throw input_error(
        "{}: found the state of bitfed serve, expected a simulation's run: revoke the client's certificate, "
        "then serve the recipe with --set federation.without=[NUMBER] and a --state of its own",
        folder.string());
  }
  Config recipe = Config::load(folder / "recipe.toml");
  std::set<uint32_t> forgotten;
  {
    const Experiment whole = load_experiment(recipe, arguments.data_dir, "run", ClientsAre::kSimulated);
    for (const std::string& client : arguments.clients) forgotten.insert(client_of(client, whole));
  }
  recipe.set("federation.without", without_text(recipe, forgotten));
  ExperimentOptions options = options_of(arguments, forgotten);
  const Experiment experiment =
      load_experiment(recipe, arguments.data_dir, "run", ClientsAre::kSimulated, options.trainers.get());
  if (fs::exists(options.out / "recipe.toml", code))
    throw input_error("{}: holds a run already, expected a new folder: --out DIR", options.out.string());
  const Effort effort = effort_of(folder, experiment, forgotten);
  fmt::print(stderr, "{}\n", effort.text);
  if (effort.fuses_again) options.reuse = folder;
  if (effort.from_checkpoint) copy_checkpoint(folder, options.out);
  auto progress = std::make_unique<Progress>(ProgressOptions{.quiet = arguments.quiet});
  const ExperimentResult result =
      run_experiment(experiment, options, [&](const Event& event) { progress->show(event); });
  progress.reset();
  write_file_atomically(result.folder / "report.html", report_page({read_run_with_model(result.folder)}));
  if (arguments.json) {
    fmt::print("{}", read_text_file(result.folder / "summary.json"));
    return;
  }
  const bool was_finished = fs::exists(folder / "summary.json", code);
  print_result(was_finished ? read_summary(folder) : RunSummary(), result, effort);
}

}  // namespace

void add_forget(Command& app) {
  auto arguments = std::make_shared<ForgetArguments>();
  Command* command = app.add_subcommand("forget", "Make a run's model without what one client gave to it");
  command->add_option("DIR", arguments->folder, "The run's folder; it stays as it is")->required();
  command
      ->add_option("--client", arguments->clients, "The person's name, or the client's number (repeatable)")
      ->required()
      ->one_at_a_time();
  command->add_option("--out", arguments->out, "The new run's folder (default: DIR-without-NUMBER)")
      ->type_name("DIR");
  command->add_option("--data-dir", arguments->data_dir, "Where to look for data first")->type_name("DIR");
  command->add_option("--threads", arguments->threads, "Clients trained at once (default: one per processor)")
      ->between(1, 4096);
  add_device_option(command, &arguments->device);
  command->add_flag("--json", arguments->json, "Print the new summary as one JSON document");
  command->add_flag("--quiet", arguments->quiet, "No progress");
  command->footer(
      "One-shot methods keep their uploads: the others' are fused again, exactly, and nobody trains. Methods\n"
      "of many rounds repeat the rounds that the client had a part in. The model is that of a federation\n"
      "with federation.without=[NUMBER] from the start. Delete the old folder: it still holds the client's\n"
      "upload.");
  command->callback([arguments] { forget(*arguments); });
}

}  // namespace bitfed::cli
