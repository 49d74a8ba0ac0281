#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/mpi/launcher.h"
#include "bitfed/mpi/rank_zero.h"
#include "bitfed/mpi/worker.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/pages/page.h"
#include "bitfed/run/run_folder.h"
#include "bitfed/simulation/experiment.h"
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/stop.h"

namespace bitfed::cli {
namespace {

struct RunArguments {
  std::string recipe;
  std::vector<std::string> overrides;
  std::string out;
  std::string data_dir;
  std::string reuse;
  std::string device = "cpu";
  unsigned threads = 0;
  int64_t seed = -1;
  bool resume = false;
  bool overwrite = false;
  bool json = false;
  bool quiet = false;
};

constexpr uint64_t kLargestRadioUpload = 1000000;  // bytes; larger ones are not for a slow radio

void row(const char* name, const std::string& value) {
  fmt::print("  {:<19} {}\n", name, value);
}

// A figure of a run, or a dash where its summary, perhaps of an earlier version, does not have it.
template <typename T>
std::string shown(const std::optional<T>& value, std::string (*text)(double)) {
  return value ? text(static_cast<double>(*value)) : "–";
}

std::string seconds_text(double seconds) {
  return fmt::format("{:.1f} s", seconds);
}

std::string milliseconds_text(double seconds) {
  return fmt::format("{:.0f} ms", 1000 * seconds);
}

std::string speed_text(double samples_per_second) {
  return fmt::format("{:.0f} samples/s", samples_per_second);
}

void print_privacy(const RunSummary& summary) {
  if (!summary.epsilon) return;
  row("privacy", fmt::format("epsilon {:.3f}, delta {}, for one client more or less; {} rounds, noise {}",
                             *summary.epsilon, summary.delta.value_or(0), summary.private_rounds.value_or(0),
                             summary.noise_multiplier.value_or(0)));
}

void print_accuracies(const RunSummary& summary) {
  row("accuracy", shown(summary.accuracy, percent));
  if (summary.f1_macro && summary.balanced_accuracy) {
    row("by class", fmt::format("macro F1 {}, balanced accuracy {}", percent(*summary.f1_macro),
                                percent(*summary.balanced_accuracy)));
  }
  if (summary.local_accuracy_mean) {
    const auto count =
        std::count_if(summary.client_results.begin(), summary.client_results.end(),
                      [](const ClientAccuracy& client) { return client.local_accuracy.has_value(); });
    row("own models", fmt::format("{} mean of {} clients", percent(*summary.local_accuracy_mean), count));
  }
  if (summary.validation_accuracy) row("validation", percent(*summary.validation_accuracy));
  if (summary.binarized_accuracy) {
    row("binarised", fmt::format("{}, signs of weights and activations taken after training",
                                 percent(*summary.binarized_accuracy)));
  }
}

std::string exchanges_text(uint64_t exchanges) {
  return exchanges == 1 ? "in one exchange" : fmt::format("in {} exchanges", exchanges);
}

void print_airtime(const RunSummary& summary) {
  if (summary.airtime.empty() || summary.upload_bytes_per_client.value_or(0) >= kLargestRadioUpload) return;
  std::string text;
  for (const Airtime& radio : summary.airtime) {
    text += fmt::format("{}{} up, {} down at {}", text.empty() ? "" : "; ",
                        human_seconds(radio.upload_seconds), human_seconds(radio.download_seconds),
                        human_bit_rate(static_cast<double>(radio.bits_per_second)));
  }
  row(summary.exchanges ? "airtime in all" : "airtime per round", text);
}

void print_costs(const RunSummary& summary) {
  const std::string raw = summary.upload_bytes_raw
                              ? fmt::format(" ({} for all classes, not coded)",
                                            human_bytes(static_cast<double>(*summary.upload_bytes_raw)))
                              : "";
  const std::string of = summary.exchanges ? exchanges_text(*summary.exchanges) : "per round";
  row("upload per client",
      fmt::format("{} {}{}", shown(summary.upload_bytes_per_client, human_bytes), of, raw));
  if (summary.preparation_upload_bytes_per_client) {
    row("", fmt::format("{} before the first round",
                        shown(summary.preparation_upload_bytes_per_client, human_bytes)));
  }
  row("download per client", fmt::format("{} {}", shown(summary.download_bytes_per_client, human_bytes), of));
  print_airtime(summary);
  row("model", shown(summary.model_bytes, human_bytes));
  row("training", fmt::format("{} of one core, {}{}", shown(summary.train_seconds, seconds_text),
                              shown(summary.train_samples_per_second, speed_text),
                              summary.reused_uploads.value_or(0) > 0 ? " (reused)" : ""));
  if (summary.device) row("device", *summary.device);
  row("aggregation", shown(summary.aggregation_seconds, milliseconds_text));
  row("wall time", shown(summary.wall_seconds, seconds_text));
  if (summary.ranks && summary.hosts)
    row("ranks", fmt::format("{} on {}", *summary.ranks, fmt::join(*summary.hosts, ", ")));
}

void print_summary(const RunSummary& summary, const std::filesystem::path& folder) {
  fmt::print("{}\n", summary.name);
  row("method", fmt::format("{}, {}", summary.method, summary.model));
  row("data", fmt::format("{}, {}", summary.dataset, summary.partition));
  print_accuracies(summary);
  print_privacy(summary);
  print_costs(summary);
  row("model sha256", summary.model_sha256);
  for (const std::string& note : summary.notes) row("note", note);
  row("report", (folder / "report.html").string());
}

Config read_recipe(const RunArguments& arguments) {
  Config recipe = Config::load(arguments.recipe);
  recipe.set_all(arguments.overrides);
  if (arguments.seed >= 0) recipe.set("seed", std::to_string(arguments.seed));
  return recipe;
}

ExperimentOptions options_of(const RunArguments& arguments) {
  ExperimentOptions options;
  options.out = arguments.out;
  options.default_name = std::filesystem::path(arguments.recipe).stem().string();
  options.data_dir = arguments.data_dir;
  options.threads = arguments.threads;
  options.reuse = arguments.reuse;
  options.version = BITFED_VERSION;
  options.stop = stop_on_signals();
  if (arguments.resume) options.existing = RunFolderWriter::Existing::kResume;
  if (arguments.overwrite) options.existing = RunFolderWriter::Existing::kOverwrite;
  return options;
}

Experiment load(const RunArguments& arguments, const ExperimentOptions& options) {
  return load_experiment(read_recipe(arguments), options.data_dir, options.default_name,
                         ClientsAre::kSimulated, options.trainers.get());
}

// A rank other than 0.
void work(Communicator& ranks, const RunArguments& arguments) {
  ExperimentOptions options = options_of(arguments);
  RankDevice device(arguments.device, ranks.rank());
  WorkerOptions worker = worker_options(arguments.device, arguments.threads, ranks.rank());
  worker.load = [&](uint32_t /*job*/) {
    options.trainers = device.open();
    return load(arguments, options);
  };
  run_worker(ranks, worker);
}

ExperimentResult run_on(Communicator* ranks, const RunArguments& arguments, const EventSink& events) {
  ExperimentOptions options = options_of(arguments);
  if (ranks == nullptr) {
    options.trainers = open_device(arguments.device);
    return run_experiment(read_recipe(arguments), options, events);
  }
  RankZero zero(*ranks, worker_options(arguments.device, arguments.threads, 0),
                [&](const std::string& text) { events(Warning{.text = text}); });
  options.trainers = RankDevice(arguments.device, 0).open();
  events(Loading{});
  return zero.run(0, load(arguments, options), options, events);
}

void run(const RunArguments& arguments) {
  Communicator* const ranks = connect_ranks();
  if (ranks && ranks->rank() > 0) return work(*ranks, arguments);
  auto progress = std::make_unique<Progress>(ProgressOptions{.quiet = arguments.quiet});
  ExperimentResult result;
  try {
    result = run_on(ranks, arguments, [&](const Event& event) { progress->show(event); });
  } catch (const Error& error) {
    progress.reset();
    if (error.kind() != Error::Kind::kStopped) throw;
    throw Error(Error::Kind::kStopped,
                "stopped; finished uploads and rounds are kept: the same command with --resume goes on");
  }
  progress.reset();
  write_file_atomically(result.folder / "report.html", report_page({read_run_with_model(result.folder)}));
  if (arguments.json) {
    fmt::print("{}", read_text_file(result.folder / "summary.json"));
  } else {
    print_summary(result.summary, result.folder);
  }
}

}  // namespace

void add_run(Command& app) {
  auto arguments = std::make_shared<RunArguments>();
  Command* command = app.add_subcommand("run", "Simulate the federation that a recipe describes");
  command->add_option("RECIPE", arguments->recipe, "The experiment, a TOML file; see recipes/")->required();
  command
      ->add_option("--set", arguments->overrides, "Override one value: --set model.clauses=300 (repeatable)")
      ->type_name("KEY=VALUE")
      ->one_at_a_time();
  command->add_option("--out", arguments->out, "The run's folder (default: runs/NAME)")->type_name("DIR");
  command->add_option("--data-dir", arguments->data_dir, "Where to look for data first")->type_name("DIR");
  command
      ->add_option("--reuse", arguments->reuse,
                   "Take the clients' uploads from this run instead of training: compares one-shot methods\n"
                   "on the very same clients. Refused where data, model, client settings or seed differ")
      ->type_name("DIR");
  command
      ->add_option("--threads", arguments->threads,
                   "Clients trained at once (default: one per processor; under mpirun or srun: one per rank)")
      ->between(1, 4096);
  add_device_option(command, &arguments->device);
  command->add_option("--seed", arguments->seed, "Override the recipe's seed")->at_least(0);
  auto* resume = command->add_flag("--resume", arguments->resume, "Go on with an interrupted run");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the run that is in the folder")
      ->excludes(resume);
  command->add_flag("--json", arguments->json, "Print the summary as one JSON document");
  command->add_flag("--quiet", arguments->quiet, "No progress");
  command->footer(
      "Writes the run's folder: report.html to look at, summary.json, events.jsonl, model.safetensors,\n"
      "recipe.toml as resolved, checkpoint/. The same recipe and seed give the same model, byte for byte,\n"
      "with any number of threads, after Ctrl-C or a crash and --resume.\n"
      "On a cluster: mpirun -n 16 bitfed run RECIPE, or srun; a rank per core, which all train clients.");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace bitfed::cli
