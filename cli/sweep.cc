#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/base/thread_pool.h"
#include "bitfed/mpi/launcher.h"
#include "bitfed/mpi/rank_zero.h"
#include "bitfed/mpi/worker.h"
#include "bitfed/report/reproduction/reproduction.h"
#include "bitfed/simulation/metrics.h"
#include "bitfed/simulation/sweep.h"
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/ranks.h"
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
  std::vector<std::string> metrics = {"accuracy", "f1-macro", "balanced", "upload-kb", "model-kb"};
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

// `trainers`: of the device, null for the CPU.
SweepOptions sweep_options(const SweepArguments& arguments, bool on_ranks,
                           std::shared_ptr<const Trainers> trainers) {
  SweepOptions options;
  options.recipe = arguments.recipe;
  options.overrides = arguments.overrides;
  for (const std::string& text : arguments.grid) options.axes.push_back(parse_grid_axis(text));
  options.jobs = arguments.jobs;
  options.experiment.default_name = fs::path(arguments.recipe).stem().string();
  options.experiment.data_dir = arguments.data_dir;
  const unsigned threads = arguments.threads > 0 ? arguments.threads : on_ranks ? 1 : processor_count();
  options.experiment.threads = std::max(1u, threads / arguments.jobs);
  options.experiment.version = BITFED_VERSION;
  options.experiment.stop = stop_on_signals();
  options.experiment.trainers = std::move(trainers);
  return options;
}

std::vector<SweepRun> plan(const SweepArguments& arguments, const SweepOptions& options) {
  const fs::path out = arguments.out.empty() ? fs::path("runs") / (options.experiment.default_name + "-sweep")
                                             : fs::path(arguments.out);
  return plan_sweep(options.axes, arguments.seeds, out);
}

// A rank as a worker. It plans the same runs: a job is the number of a group's first run. What goes wrong is
// for rank 0 to report.
WorkerOptions worker_of(const Communicator& ranks, const SweepArguments& arguments) {
  const auto device = std::make_shared<RankDevice>(arguments.device, ranks.rank());
  WorkerOptions worker = worker_options(arguments.device, arguments.threads, ranks.rank());
  worker.run_alone = [device, &arguments](uint32_t job, const std::function<bool()>& stop) {
    SweepOptions options = sweep_options(arguments, true, device->open());
    options.experiment.stop = stop;
    for (const std::vector<SweepRun>& group : group_sweep(options.axes, plan(arguments, options))) {
      if (group.front().number == job)
        run_sweep(options, group, [](const SweepRun&, const ExperimentResult&) {});
    }
  };
  worker.load = [device, &arguments](uint32_t job) {
    const SweepOptions options = sweep_options(arguments, true, device->open());
    return load_sweep_run(options, plan(arguments, options).at(job));
  };
  return worker;
}

// As many groups as fill all ranks are run by a rank each, and so is the rest if that is faster; else by all
// ranks together, one run after the other. What is finished is only looked at.
void sweep_on_ranks(RankZero& ranks, SweepOptions options, const std::vector<SweepRun>& runs, bool quiet,
                    const SweepProgress& finished) {
  std::vector<SweepRun> done;
  std::vector<std::vector<SweepRun>> pending;
  for (const std::vector<SweepRun>& group : group_sweep(options.axes, runs)) {
    const auto is_done = [](const SweepRun& run) { return fs::exists(run.folder / "summary.json"); };
    if (std::all_of(group.begin(), group.end(), is_done)) {
      done.insert(done.end(), group.begin(), group.end());
    } else {
      pending.push_back(group);
    }
  }
  run_sweep(options, done, finished);
  const size_t rest = pending.size() % static_cast<size_t>(ranks.workers());
  size_t alone = pending.size() - rest;
  if (rest > 0 &&
      ranks.is_faster_alone(rest, load_sweep_run(options, pending[alone].front()).clients_per_round))
    alone = pending.size();
  std::vector<uint32_t> jobs;
  for (size_t i = 0; i < alone; ++i) jobs.push_back(static_cast<uint32_t>(pending[i].front().number));
  ranks.run_alone(
      jobs, options.experiment.stop,
      [&](uint32_t job, int rank) {
        if (!quiet) fmt::print(stderr, "run {}: begun by rank {}\n", job + 1, rank);
      },
      [&](uint32_t job) {
        const auto group = std::find_if(pending.begin(), pending.end(), [&](const auto& candidate) {
          return candidate.front().number == job;
        });
        for (const SweepRun& run : *group) finished(run, {run.folder, read_summary(run.folder)});
      });
  options.jobs = 1;
  options.run = [&](const SweepRun& run, const Experiment& experiment, const ExperimentOptions& with) {
    return ranks.run(static_cast<uint32_t>(run.number), experiment, with, [](const Event&) {});
  };
  for (size_t i = alone; i < pending.size(); ++i) run_sweep(options, pending[i], finished);
}

void sweep(const SweepArguments& arguments) {
  Communicator* const ranks = connect_ranks();
  if (ranks && ranks->rank() > 0) return run_worker(*ranks, worker_of(*ranks, arguments));
  const auto warn = [&](const std::string& text) {
    if (!arguments.quiet) fmt::print(stderr, "{}\n", text);
  };
  const auto zero = ranks ? std::make_unique<RankZero>(*ranks, worker_of(*ranks, arguments), warn) : nullptr;
  const SweepOptions options =
      sweep_options(arguments, zero != nullptr,
                    zero ? RankDevice(arguments.device, 0).open() : open_device(arguments.device));
  const std::vector<SweepRun> runs = plan(arguments, options);
  const fs::path out = runs.front().folder.parent_path().parent_path();
  const ReproducedTable empty = empty_table(arguments, options.axes, runs);
  check_sweep(options, runs);
  std::vector<ExperimentResult> results(runs.size());
  size_t done = 0;
  const auto finished = [&](const SweepRun& run, const ExperimentResult& result) {
    results[run.number] = result;
    write_reproduced(gather(empty, arguments, runs, results), out);
    if (arguments.quiet) return;
    fmt::print(stderr, "run {}/{}: {}{}seed {}: accuracy {:.2f} %{}\n", ++done, runs.size(),
               fmt::join(run.values, ", "), run.values.empty() ? "" : ", ", run.seed,
               100 * result.summary.accuracy.value_or(0),
               result.summary.reused_uploads.value_or(0) > 0 ? ", clients reused" : "");
  };
  try {
    if (zero) {
      sweep_on_ranks(*zero, options, runs, arguments.quiet, finished);
    } else {
      run_sweep(options, runs, finished);
    }
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

void add_sweep(Command& app) {
  auto arguments = std::make_shared<SweepArguments>();
  Command* command =
      app.add_subcommand("sweep", "Run a recipe over a grid of settings and seeds, and tabulate the results");
  command->add_option("RECIPE", arguments->recipe, "The experiment, a TOML file")->required();
  command
      ->add_option("--grid", arguments->grid,
                   "Values to try for a key: --grid model.sensitivity=3,5,10 (repeatable)")
      ->type_name("KEY=V,V")
      ->one_at_a_time()
      ->required();
  command->add_option("--seeds", arguments->seeds, "Seeds of every combination, as 0,1,2 (default: 0)")
      ->separated_by(',')
      ->type_name("N,N");
  command->add_option("--set", arguments->overrides, "Override one value of every run (repeatable)")
      ->type_name("KEY=VALUE")
      ->one_at_a_time();
  command
      ->add_option("--metrics", arguments->metrics,
                   "Columns (default: accuracy,f1-macro,balanced,upload-kb,model-kb)")
      ->separated_by(',')
      ->type_name("NAME,NAME");
  command->add_option("--out", arguments->out, "The folder for everything (default: runs/NAME-sweep)")
      ->type_name("DIR");
  command->add_option("--data-dir", arguments->data_dir, "Where to look for data first")->type_name("DIR");
  command->add_option("--jobs", arguments->jobs, "Runs at once (default: 1)")->between(1, 256);
  command
      ->add_option("--threads", arguments->threads, "Threads of all runs together (default: all processors)")
      ->between(1, 4096);
  add_device_option(command, &arguments->device);
  command->add_flag("--quiet", arguments->quiet, "No progress");
  command->footer(
      "Writes table.html, table.md, table.csv and table.tex, and a run's folder for every combination and\n"
      "seed. Clients that would train the same again are not trained again: their uploads are reused.\n"
      "Finished runs are kept: after Ctrl-C or a crash the same command goes on.\n"
      "Under mpirun or srun the runs are spread over the ranks.\n"
      "Example: bitfed sweep recipes/quickstart.toml --grid model.sensitivity=3,5,10 --seeds 0,1,2");
  command->callback([arguments] { sweep(*arguments); });
}

}  // namespace bitfed::cli
