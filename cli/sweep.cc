#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/base/thread_pool.h"
#include "bitfed/report/reproduction/reproduction.h"
#include "bitfed/simulation/metrics.h"
#include "bitfed/simulation/sweep.h"
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/reproduced.h"
#include "cli/stop.h"

namespace bitfed::cli {
namespace {

namespace fs = std::filesystem;

struct SweepArguments {
  std::string recipe;
  std::vector<std::string> overrides;
  std::vector<std::string> grid;
  std::vector<uint64_t> seeds = {0};
  std::vector<std::string> metrics = {"accuracy", "f1-macro", "balanced", "upload", "model"};
  std::string out;
  std::string data_dir;
  std::string device = "cpu";
  unsigned threads = 0;
  unsigned jobs = 1;
  bool quiet = false;
};

const Metric& find_metric(const std::string& name) {
  std::vector<std::string> known;
  for (const Metric& metric : metrics()) {
    if (metric.name == name) return metric;
    known.push_back(metric.name);
  }
  throw input_error("--metrics: found '{}'{}", name, suggestion(name, known));
}

// A row for each combination, empty.
ReproducedTable empty_table(const SweepArguments& arguments, const std::vector<GridAxis>& axes,
                            const std::vector<SweepRun>& runs) {
  ReproducedTable table;
  table.name = fs::path(arguments.recipe).stem().string();
  table.title = fmt::format("{} over {}", table.name, fmt::join(arguments.grid, ", "));
  table.is_sweep = true;
  table.seeds = arguments.seeds.size();
  for (const GridAxis& axis : axes) table.row_header.push_back(axis.key);
  for (const std::string& name : arguments.metrics) {
    const Metric& metric = find_metric(name);
    table.columns.push_back({metric.name, metric.unit, metric.decimals, metric.lower_is_better, {}, true});
  }
  for (const SweepRun& run : runs) {
    if (run.cell < table.rows.size()) continue;
    table.rows.push_back({run.values, "", std::vector<ReproducedCell>(table.columns.size())});
  }
  return table;
}

// From the runs that are finished, in the order of the plan: the same table however they were run.
ReproducedTable gather(ReproducedTable table, const SweepArguments& arguments,
                       const std::vector<SweepRun>& runs, const std::vector<ExperimentResult>& results) {
  for (size_t i = 0; i < runs.size(); ++i) {
    if (results[i].folder.empty()) continue;
    const RunSummary& summary = results[i].summary;
    for (size_t column = 0; column < table.columns.size(); ++column) {
      const std::optional<double> value = find_metric(arguments.metrics[column]).value(summary);
      if (value) table.rows[runs[i].cell].cells[column].ours.push_back(*value);
    }
    const std::string machine = machine_of(summary);
    if (std::find(table.machines.begin(), table.machines.end(), machine) == table.machines.end())
      table.machines.push_back(machine);
  }
  return table;
}

SweepOptions sweep_options(const SweepArguments& arguments) {
  SweepOptions options;
  options.recipe = arguments.recipe;
  options.overrides = arguments.overrides;
  for (const std::string& text : arguments.grid) options.axes.push_back(parse_grid_axis(text));
  options.jobs = arguments.jobs;
  options.experiment.default_name = fs::path(arguments.recipe).stem().string();
  options.experiment.data_dir = arguments.data_dir;
  const unsigned threads = arguments.threads > 0 ? arguments.threads : processor_count();
  options.experiment.threads = std::max(1u, threads / arguments.jobs);
  options.experiment.version = BITFED_VERSION;
  options.experiment.stop = stop_on_signals();
  options.experiment.trainers = open_device(arguments.device);
  return options;
}

void sweep(const SweepArguments& arguments) {
  const SweepOptions options = sweep_options(arguments);
  const fs::path out = arguments.out.empty() ? fs::path("runs") / (options.experiment.default_name + "-sweep")
                                             : fs::path(arguments.out);
  const std::vector<SweepRun> runs = plan_sweep(options.axes, arguments.seeds, out);
  const ReproducedTable empty = empty_table(arguments, options.axes, runs);
  std::vector<ExperimentResult> results(runs.size());
  size_t done = 0;
  const auto finished = [&](const SweepRun& run, const ExperimentResult& result) {
    results[static_cast<size_t>(&run - runs.data())] = result;
    write_reproduced(gather(empty, arguments, runs, results), out);
    if (arguments.quiet) return;
    fmt::print(stderr, "run {}/{}: {}{}seed {}: accuracy {:.2f} %{}\n", ++done, runs.size(),
               fmt::join(run.values, ", "), run.values.empty() ? "" : ", ", run.seed,
               100 * result.summary.accuracy.value_or(0),
               result.summary.reused_uploads.value_or(0) > 0 ? ", clients reused" : "");
  };
  try {
    run_sweep(options, runs, finished);
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kStopped) throw;
    throw Error(Error::Kind::kStopped, "stopped; what is finished is kept: the same command goes on");
  }
  const ReproducedTable table = gather(empty, arguments, runs, results);
  std::vector<size_t> all(table.rows.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  fmt::print("{}", reproduction_text(table, all));
  fmt::print(stderr, "wrote {}, table.md, table.csv, table.tex\n", (out / "table.html").string());
}

}  // namespace

void add_sweep(CLI::App& app) {
  auto arguments = std::make_shared<SweepArguments>();
  CLI::App* command =
      app.add_subcommand("sweep", "Run a recipe over a grid of settings and seeds, and tabulate the results");
  command->add_option("RECIPE", arguments->recipe, "The experiment, a TOML file")->required();
  command
      ->add_option("--grid", arguments->grid,
                   "Values to try for a key: --grid model.sensitivity=3,5,10 (repeatable)")
      ->type_name("KEY=V,V")
      ->allow_extra_args(false)
      ->required();
  command->add_option("--seeds", arguments->seeds, "Seeds of every combination, as 0,1,2 (default: 0)")
      ->delimiter(',')
      ->type_name("N,N");
  command->add_option("--set", arguments->overrides, "Override one value of every run (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--metrics", arguments->metrics,
                   "Columns (default: accuracy,f1-macro,balanced,upload,model)")
      ->delimiter(',')
      ->type_name("NAME,NAME");
  command->add_option("--out", arguments->out, "The folder for everything (default: runs/NAME-sweep)")
      ->type_name("DIR");
  command->add_option("--data-dir", arguments->data_dir, "Where to look for data first")->type_name("DIR");
  command->add_option("--jobs", arguments->jobs, "Runs at once (default: 1)")->check(CLI::Range(1u, 256u));
  command
      ->add_option("--threads", arguments->threads, "Threads of all runs together (default: all processors)")
      ->check(CLI::Range(1u, 4096u));
  add_device_option(command, &arguments->device);
  command->add_flag("--quiet", arguments->quiet, "No progress");
  command->footer(
      "Writes table.html, table.md, table.csv and table.tex, and a run's folder for every combination and\n"
      "seed. Clients that would train the same again are not trained again: their uploads are reused.\n"
      "Finished runs are kept: after Ctrl-C or a crash the same command goes on.\n"
      "Example: bitfed sweep recipes/quickstart.toml --grid model.sensitivity=3,5,10 --seeds 0,1,2");
  command->callback([arguments] { sweep(*arguments); });
}

}  // namespace bitfed::cli
