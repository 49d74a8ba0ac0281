#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/pages/page.h"
#include "bitfed/run/run_folder.h"
#include "bitfed/simulation/experiment.h"
#include "cli/commands.h"
#include "cli/progress.h"
#include "cli/stop.h"

namespace bitfed::cli {
namespace {

struct RunArguments {
  std::string recipe;
  std::vector<std::string> overrides;
  std::string out;
  std::string data_dir;
  std::string reuse;
  unsigned threads = 0;
  int64_t seed = -1;
  bool resume = false;
  bool overwrite = false;
  bool json = false;
  bool quiet = false;
};

constexpr double kLargestRadioUpload = 1e6;  // bytes; no one sends more over a slow radio

void row(const char* name, const std::string& value) {
  fmt::print("  {:<18} {}\n", name, value);
}

void print_own_models(const Event& summary) {
  const auto mean = summary.find("local_accuracy_mean");
  const auto results = summary.find("client_results");
  if (mean == summary.end() || !mean->is_number() || results == summary.end()) return;
  const auto count = std::count_if(results->begin(), results->end(),
                                   [](const Event& client) { return client["local_accuracy"].is_number(); });
  row("own models", fmt::format("{:.2f} % mean of {} clients", 100 * mean->get<double>(), count));
}

void print_airtime(const Event& summary) {
  const auto airtime = summary.find("airtime");
  if (airtime == summary.end() || summary["upload_bytes_per_client"].get<double>() >= kLargestRadioUpload)
    return;
  std::string text;
  for (const Event& radio : *airtime) {
    text += fmt::format("{}{} up, {} down at {}", text.empty() ? "" : "; ",
                        human_seconds(radio["upload_seconds"]), human_seconds(radio["download_seconds"]),
                        human_bit_rate(radio["bits_per_second"]));
  }
  row("airtime a round", text);
}

void print_summary(const Event& summary, const std::filesystem::path& folder) {
  fmt::print("{}\n", summary["name"].get<std::string>());
  row("method",
      fmt::format("{}, {}", summary["method"].get<std::string>(), summary["model"].get<std::string>()));
  row("data",
      fmt::format("{}, {}", summary["dataset"].get<std::string>(), summary["partition"].get<std::string>()));
  row("accuracy", fmt::format("{:.2f} %", 100 * summary["accuracy"].get<double>()));
  print_own_models(summary);
  if (summary["validation_accuracy"].is_number()) {
    row("validation", fmt::format("{:.2f} %", 100 * summary["validation_accuracy"].get<double>()));
  }
  const auto binarised = summary.find("binarized_accuracy");
  if (binarised != summary.end() && binarised->is_number()) {
    row("binarised", fmt::format("{:.2f} %, signs of weights and activations taken after training",
                                 100 * binarised->get<double>()));
  }
  const auto raw = summary.find("upload_bytes_raw");
  const bool coded = raw != summary.end() && raw->is_number();
  row("upload a client",
      fmt::format("{} a round{}", human_bytes(summary["upload_bytes_per_client"]),
                  coded ? fmt::format(" ({} for all classes, not coded)", human_bytes(*raw)) : ""));
  row("download a client", fmt::format("{} a round", human_bytes(summary["download_bytes_per_client"])));
  print_airtime(summary);
  row("model", human_bytes(summary["model_bytes"]));
  row("training",
      fmt::format("{:.1f} s of one core, {:.0f} samples/s{}", summary["train_seconds"].get<double>(),
                  summary["train_samples_per_second"].get<double>(),
                  summary["reused_uploads"].get<uint64_t>() > 0 ? " (reused)" : ""));
  row("aggregation", fmt::format("{:.0f} ms", 1000 * summary["aggregation_seconds"].get<double>()));
  row("wall time", fmt::format("{:.1f} s", summary["wall_seconds"].get<double>()));
  row("model sha256", summary["model_sha256"].get<std::string>());
  for (const auto& note : summary["notes"]) row("note", note.get<std::string>());
  row("report", (folder / "report.html").string());
}

void run(const RunArguments& arguments) {
  Config recipe = Config::load(arguments.recipe);
  recipe.set_all(arguments.overrides);
  if (arguments.seed >= 0) recipe.set("seed", std::to_string(arguments.seed));

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

  auto progress = std::make_unique<Progress>(ProgressOptions{.quiet = arguments.quiet});
  ExperimentResult result;
  try {
    result = run_experiment(recipe, options, [&](const Event& event) { progress->show(event); });
  } catch (const Error& error) {
    progress.reset();
    if (error.kind() != Error::Kind::kStopped) throw;
    throw Error(Error::Kind::kStopped,
                "stopped; finished uploads and rounds are kept: the same command with --resume goes on");
  }
  progress.reset();
  write_file_atomically(result.folder / "report.html", report_page({read_run_with_model(result.folder)}));
  if (arguments.json) {
    fmt::print("{}\n", result.summary.dump(1));
  } else {
    print_summary(result.summary, result.folder);
  }
}

}  // namespace

void add_run(CLI::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Simulate the federation that a recipe describes");
  command->add_option("RECIPE", arguments->recipe, "The experiment, a TOML file; see recipes/")->required();
  command
      ->add_option("--set", arguments->overrides, "Override one value: --set model.clauses=300 (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--out", arguments->out, "The run's folder (default: runs/NAME)")->type_name("DIR");
  command->add_option("--data-dir", arguments->data_dir, "Where to look for data first")->type_name("DIR");
  command
      ->add_option("--reuse", arguments->reuse,
                   "Take the clients' uploads from this run instead of training: compares one-shot methods\n"
                   "on the very same clients. Refused where data, model, client settings or seed differ")
      ->type_name("DIR");
  command->add_option("--threads", arguments->threads, "Clients trained at once (default: one per processor)")
      ->check(CLI::Range(1u, 4096u));
  command->add_option("--seed", arguments->seed, "Override the recipe's seed")->check(CLI::NonNegativeNumber);
  auto* resume = command->add_flag("--resume", arguments->resume, "Go on with an interrupted run");
  command->add_flag("--overwrite", arguments->overwrite, "Replace the run that is in the folder")
      ->excludes(resume);
  command->add_flag("--json", arguments->json, "Print the summary as one JSON document");
  command->add_flag("--quiet", arguments->quiet, "No progress");
  command->footer(
      "Writes the run's folder: report.html to look at, summary.json, events.jsonl, model.safetensors,\n"
      "recipe.toml as resolved, checkpoint/. The same recipe and seed give the same model, byte for byte,\n"
      "with any number of threads, after Ctrl-C or a crash and --resume.");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace bitfed::cli
