#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/base/thread_pool.h"
#include "bitfed/data/catalog/catalog.h"
#include "bitfed/mpi/launcher.h"
#include "bitfed/mpi/rank_zero.h"
#include "bitfed/mpi/worker.h"
#include "bitfed/report/pages/page.h"
#include "bitfed/run/run_folder.h"
#include "bitfed/simulation/reproduction.h"
#include "bitfed/simulation/time_estimate.h"
#include "cli/commands.h"
#include "cli/device.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/reproduced.h"
#include "cli/stop.h"

namespace bitfed::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// A round of a small network, or the last clients of an uneven one, leave most of a GPU idle.
constexpr unsigned kJobsOnDevice = 4;

struct ReproduceArguments {
  std::string table;
  std::vector<std::string> rows;
  std::vector<int64_t> seeds;
  std::vector<std::string> overrides;
  std::string out = "runs/reproduce";
  std::string data_dir;
  std::string recipes;
  std::string device = "cpu";
  unsigned threads = 0;
  unsigned jobs = 0;  // 0: one on a CPU, kJobsOnDevice on a device
  bool list = false;
  bool quick = false;
  bool quiet = false;
};

std::vector<fs::path> recipe_folders(const std::string& given) {
  if (!given.empty()) return {given};
  std::vector<fs::path> folders = {"recipes"};
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  if (!code) folders.push_back((program.parent_path() / BITFED_RECIPES_FROM_PROGRAM).lexically_normal());
  return folders;
}

void list_tables(const std::vector<fs::path>& folders) {
  const std::vector<std::string> names = paper_table_names(folders);
  if (names.empty()) {
    std::vector<std::string> looked_in;
    for (const fs::path& folder : folders) looked_in.push_back((folder / "papers").string());
    throw input_error(
        "no tables: looked for papers/PAPER-TABLE.toml in {}; name a folder of recipes with --recipes",
        fmt::join(looked_in, ", "));
  }
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  for (const std::string& name : names) {
    const PaperTable table = load_paper_table(name, folders);
    fmt::print("{:<{}}  {} ({} rows, {} seeds)\n", name, width, table.title, table.rows.size(),
               table.seeds.size());
  }
}

// One call of the command: the runs to do, and the progress.
class Reproduction {
 public:
  // `device`: null for the CPU.
  Reproduction(const ReproduceArguments& arguments, PaperTable table, std::shared_ptr<const Trainers> device)
      : arguments_(arguments),
        table_(std::move(table)),
        rows_(select_rows(table_, arguments.rows)),
        device_(std::move(device)) {
    const fs::path out = arguments.quick ? fs::path(arguments.out) / "quick" : fs::path(arguments.out);
    options_.cells = out / "cells";
    options_.quick = arguments.quick;
    options_.set = arguments.overrides;
    folder_ = out / table_.name;
    std::string name = folder_.filename().string();
    std::replace(name.begin(), name.end(), ':', '-');
    // Beside the table with its own settings.
    if (!options_.set.empty())
      name += "-" + sha256_hex(fmt::format("{}", fmt::join(options_.set, "\n"))).substr(0, 8);
    folder_.replace_filename(name);
    cells_ = plan_cells(table_, options_);
    find_pending();
  }

  void run(RankZero* ranks = nullptr) {
    const ExperimentOptions experiment = experiment_options();
    for (const std::string& line : skipped_) fmt::print(stderr, "rows skipped: {}\n", line);
    if (!arguments_.quiet) announce();
    ranks_ = ranks;
    if (ranks_ != nullptr) run_alone_on_ranks(experiment.stop);
    run_jobs(experiment);
  }

  // A rank other than 0: the cells of the row and seed of this one, in order.
  void run_alone(uint32_t job, const std::function<bool()>& stop) const {
    ExperimentOptions experiment = experiment_options();
    experiment.threads = std::max(1u, arguments_.threads);
    experiment.stop = stop;
    for (const ReproductionCell* cell : pending_) {
      if (cell->row != cells_[job].row || cell->seed != cells_[job].seed) continue;
      const ExperimentResult result =
          run_cell(table_, options_, *cell, experiment, [](const Event& /*event*/) {});
      write_report(result);
    }
    // Rank 0 has the data, or it would not have asked.
    if (!finished_summary(cells_[job])) throw input_error("{}", fmt::join(skipped_, "; "));
  }

  Experiment load(uint32_t job) const {
    return load_cell(table_, options_, cells_[job], experiment_options());
  }

  ReproducedTable write() const {
    ReproducedTable result = gather(table_, options_, cells_, not_run_);
    write_reproduced(result, folder_);
    return result;
  }

  const fs::path& folder() const { return folder_; }
  const std::vector<size_t>& rows() const { return rows_; }

 private:
  bool is_selected(const ReproductionCell& cell) const {
    const std::vector<int64_t> seeds = select_seeds(table_, arguments_.seeds);
    return std::find(rows_.begin(), rows_.end(), cell.row) != rows_.end() &&
           std::find(seeds.begin(), seeds.end(), cell.seed) != seeds.end();
  }

  bool has_data(const ReproductionCell& cell) const {
    return cell.dataset.empty() ? search_data_file(cell.file, arguments_.data_dir).has_value()
                                : find_dataset(find_entry(cell.dataset), arguments_.data_dir).has_value();
  }

  // What is selected, not finished, and whose data is here.
  void find_pending() {
    std::map<std::string, std::string> missing;  // data -> what to do about it
    bool any_finished = false;
    for (const ReproductionCell& cell : cells_) {
      if (!is_selected(cell)) continue;
      if (finished_summary(cell)) {
        any_finished = true;
      } else if (!has_data(cell)) {
        const std::string what = cell.dataset.empty() ? fmt::format("'{}'", cell.file)
                                                      : fmt::format("data set '{}'", cell.dataset);
        missing[what] = cell.dataset.empty() ? fmt::format("{} says what it is", table_.rows[cell.row].recipe)
                                             : find_entry(cell.dataset).how_to_get;
        not_run_[cell.row] = fmt::format("{} is not on this machine", what);
      } else if (std::none_of(pending_.begin(), pending_.end(), [&](const ReproductionCell* other) {
                   return other->folder == cell.folder;  // of another row that is the same run
                 })) {
        pending_.push_back(&cell);
        estimate_.plan(cell.kind, cell.cost);
      }
    }
    for (const auto& [what, how] : missing) {
      skipped_.push_back(fmt::format("{} is not on this machine; {}", what, how));
    }
    if (pending_.empty() && !any_finished)
      throw input_error("no row can be run: {}", fmt::join(skipped_, "; "));
  }

  ExperimentOptions experiment_options() const {
    ExperimentOptions experiment;
    experiment.data_dir = arguments_.data_dir;
    experiment.threads = arguments_.threads;
    // Runs on a device share it, and seldom use the processors at the same time.
    if (!device_ && jobs() > 1) {
      const unsigned threads = arguments_.threads == 0 ? processor_count() : arguments_.threads;
      experiment.threads = std::max(1u, threads / jobs());
    }
    experiment.version = BITFED_VERSION;
    experiment.stop = stop_on_signals();
    experiment.trainers = device_;
    return experiment;
  }

  unsigned jobs() const {
    if (ranks_ != nullptr) return 1;  // all ranks train the clients of one run
    if (arguments_.jobs > 0) return arguments_.jobs;
    return device_ ? kJobsOnDevice : 1;
  }

  // Several rows and seeds at once; the cells of one are run in order, since later ones take the uploads of
  // the first. The first error ends the command, after the runs that are under way.
  void run_jobs(const ExperimentOptions& experiment) {
    std::mutex mutex;
    size_t next = 0;
    std::exception_ptr error;
    const auto take = [&]() -> std::pair<size_t, size_t> {
      const std::lock_guard lock(mutex);
      if (error || experiment.stop()) return {0, 0};
      const size_t first = next;
      while (next < pending_.size() && pending_[next]->row == pending_[first]->row &&
             pending_[next]->seed == pending_[first]->seed)
        ++next;
      return {first, next};
    };
    const auto work = [&] {
      for (auto [first, end] = take(); first < end; std::tie(first, end) = take()) {
        try {
          for (size_t i = first; i < end; ++i) run_one(i, experiment);
        } catch (const Error& failed) {
          const std::lock_guard lock(mutex);
          const bool is_stop = failed.kind() == Error::Kind::kStopped;
          if (error && !is_stop) bars_.line(failed.what());  // the first one is printed at the end
          if (!error) error = std::current_exception();
          return;
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!error) error = std::current_exception();
          return;
        }
      }
    };
    {
      std::vector<std::jthread> others;
      for (size_t i = 1; i < std::min<size_t>(jobs(), pending_.size()); ++i) others.emplace_back(work);
      work();
    }
    if (error) std::rethrow_exception(error);
    if (next < pending_.size()) throw Error(Error::Kind::kStopped, "stopped");
  }

  void announce() const {
    const auto selected = std::count_if(cells_.begin(), cells_.end(),
                                        [&](const ReproductionCell& cell) { return is_selected(cell); });
    fmt::print(stderr, "{}{}: {} of {} runs to do in {}\n", table_.name,
               arguments_.quick ? ", quick trial" : "", pending_.size(), selected, options_.cells.string());
  }

  void run_one(size_t index, const ExperimentOptions& experiment) {
    const ReproductionCell& cell = *pending_[index];
    const auto start = Clock::now();
    const auto elapsed = [start] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    const std::string what = fmt::format("run {}/{}, {}, seed {}, {}", index + 1, pending_.size(),
                                         table_.rows[cell.row].name, cell.seed, cell.method);
    double at_hand = 0;
    {
      Progress progress({arguments_.quiet, what + " ",
                         [&](double done, double without_training) {
                           at_hand = without_training;
                           return time_left(cell, done, at_hand, elapsed());
                         },
                         &bars_});
      const RunExperiment on_ranks = [&](const auto& read, const auto& with, const auto& events) {
        return ranks_->run(number_of(cell), read, with, events);
      };
      write_report(run_cell(
          table_, options_, cell, experiment, [&](const Event& event) { progress.show(event); },
          ranks_ == nullptr ? RunExperiment() : on_ranks));
    }
    const std::lock_guard lock(mutex_);
    measure(&estimate_, cell, {1, cell.reuse.empty() ? at_hand : 0}, elapsed());
    if (!arguments_.quiet)
      bars_.line(fmt::format("{}: {}{}", what, short_duration(elapsed()), left(estimate_)));
    finished_.insert(&cell);
    const auto is_left = [&](const ReproductionCell* other) {
      return other->row == cell.row && finished_.count(other) == 0;
    };
    if (std::none_of(pending_.begin(), pending_.end(), is_left)) finish_row(cell.row);
  }

  static void write_report(const ExperimentResult& result) {
    write_file_atomically(result.folder / "report.html", report_page({read_run_with_model(result.folder)}));
  }

  uint32_t number_of(const ReproductionCell& cell) const {
    return static_cast<uint32_t>(&cell - cells_.data());
  }

  // As many rows and seeds as fill all ranks are run by a rank each, the largest first, and so is the rest if
  // that is faster; else it is left in `pending_` and run by all ranks together, one cell after the other.
  void run_alone_on_ranks(const std::function<bool()>& stop) {
    std::vector<uint32_t> jobs;
    std::map<std::pair<size_t, int64_t>, double> costs;
    for (const ReproductionCell* cell : pending_) {
      double& cost = costs[{cell->row, cell->seed}];
      if (cost == 0) jobs.push_back(number_of(*cell));
      cost += cell->cost;
    }
    const auto cost = [&](uint32_t job) { return costs[{cells_[job].row, cells_[job].seed}]; };
    std::stable_sort(jobs.begin(), jobs.end(), [&](uint32_t a, uint32_t b) { return cost(a) > cost(b); });
    const size_t rest = jobs.size() % static_cast<size_t>(ranks_->workers());
    if (rest > 0 && !ranks_->is_faster_alone(rest, load(jobs.back()).clients_per_round))
      jobs.resize(jobs.size() - rest);
    ranks_->run_alone(
        jobs, stop,
        [&](uint32_t job, int rank) {
          if (!arguments_.quiet) fmt::print(stderr, "{}: begun by rank {}\n", job_text(job), rank);
        },
        [&](uint32_t job) {
          if (!arguments_.quiet) fmt::print(stderr, "{}: done\n", job_text(job));
          std::erase_if(pending_, [&](const ReproductionCell* cell) {
            const bool is_done = cell->row == cells_[job].row && cell->seed == cells_[job].seed;
            if (is_done) estimate_.skip(cell->kind, cell->cost);
            return is_done;
          });
          finish_row(cells_[job].row);
        });
  }

  std::string job_text(uint32_t job) const {
    return fmt::format("{}, seed {}", table_.rows[cells_[job].row].name, cells_[job].seed);
  }

  struct Share {
    double done = 0;     // of a cell
    double at_hand = 0;  // of it, without training
  };

  static void measure(TimeEstimate* estimate, const ReproductionCell& cell, Share share, double seconds) {
    estimate->skip(cell.kind, cell.cost * share.at_hand);
    estimate->finish(cell.kind, cell.cost * (share.done - share.at_hand), seconds);
  }

  std::string left(const TimeEstimate& estimate) const {
    std::optional<double> seconds = estimate.seconds_left();
    if (seconds) *seconds /= static_cast<double>(std::min<size_t>(jobs(), pending_.size()));
    return seconds ? fmt::format(", {} left for the table", short_duration(*seconds)) : "";
  }

  std::string time_left(const ReproductionCell& cell, double done, double at_hand, double seconds) const {
    const std::lock_guard lock(mutex_);
    // The first two seconds go into reading the data.
    if (seconds < 2) return left(estimate_);
    TimeEstimate now = estimate_;
    measure(&now, cell, {done, at_hand}, seconds);
    return left(now);
  }

  void finish_row(size_t row) {
    const ReproducedTable result = write();
    if (!arguments_.quiet) bars_.line(row_line(result, row));
  }

  const ReproduceArguments& arguments_;
  PaperTable table_;
  std::vector<size_t> rows_;
  std::shared_ptr<const Trainers> device_;  // null: the CPU
  ReproductionOptions options_;
  fs::path folder_;  // of the table's own files
  std::vector<ReproductionCell> cells_;
  std::vector<const ReproductionCell*> pending_;
  std::map<size_t, std::string> not_run_;
  std::vector<std::string> skipped_;  // a line per data set that is missing
  Bars bars_;
  mutable std::mutex mutex_;  // of the two below, and of the table's files
  TimeEstimate estimate_;
  std::set<const ReproductionCell*> finished_;
  RankZero* ranks_ = nullptr;  // the other ranks; null: there are none
};

// A rank as a worker. It plans the same cells; what goes wrong is for rank 0 to report.
WorkerOptions worker_of(const Communicator& ranks, const ReproduceArguments& arguments) {
  const auto reproduction = std::make_shared<std::optional<Reproduction>>();
  const auto device = std::make_shared<RankDevice>(arguments.device, ranks.rank());
  const auto planned = [=, &arguments]() -> const Reproduction& {
    reproduction->emplace(arguments, load_paper_table(arguments.table, recipe_folders(arguments.recipes)),
                          device->open());
    return **reproduction;
  };
  WorkerOptions worker = worker_options(arguments.device, arguments.threads, ranks.rank());
  worker.load = [planned](uint32_t job) { return planned().load(job); };
  worker.run_alone = [planned](uint32_t job, const auto& stop) { planned().run_alone(job, stop); };
  return worker;
}

void reproduce(const ReproduceArguments& arguments) {
  const std::vector<fs::path> folders = recipe_folders(arguments.recipes);
  if (arguments.list || arguments.table.empty()) return list_tables(folders);
  Communicator* const ranks = connect_ranks();
  if (ranks && ranks->rank() > 0) return run_worker(*ranks, worker_of(*ranks, arguments));
  const auto warn = [&](const std::string& text) {
    if (!arguments.quiet) fmt::print(stderr, "{}\n", text);
  };
  const auto zero = ranks ? std::make_unique<RankZero>(*ranks, worker_of(*ranks, arguments), warn) : nullptr;
  Reproduction reproduction(arguments, load_paper_table(arguments.table, folders),
                            zero ? RankDevice(arguments.device, 0).open() : open_device(arguments.device));
  try {
    reproduction.run(zero.get());
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kStopped) throw;
    reproduction.write();
    throw Error(Error::Kind::kStopped, "stopped; what is finished is kept: the same command goes on");
  }
  const ReproducedTable result = reproduction.write();
  fmt::print("{}", reproduction_text(result, reproduction.rows()));
  fmt::print(stderr, "wrote {}, table.md, table.csv, table.tex\n",
             (reproduction.folder() / "table.html").string());
}

}  // namespace

void add_reproduce(Command& app) {
  auto arguments = std::make_shared<ReproduceArguments>();
  Command* command =
      app.add_subcommand("reproduce", "Run a paper's table and print paper, ours and difference");
  command->add_option("PAPER:TABLE", arguments->table, "The table, as fedtmos:table1; none: list them");
  command->add_flag("--list", arguments->list, "The tables that there are");
  command
      ->add_option("--rows", arguments->rows,
                   "Only rows that match: mnist, 'mnist/Dir(0.1)', '*/S(*)' (several can be given)")
      ->type_name("GLOB");
  auto* seeds =
      command->add_option("--seeds", arguments->seeds, "Only these of the table's seeds")->type_name("N");
  command
      ->add_flag("--quick", arguments->quick,
                 "A trial: one seed and few epochs, in a folder of its own and marked in every output")
      ->excludes(seeds);
  command
      ->add_option(
          "--set", arguments->overrides,
          "Override one value of every row: --set client.precision=tf32 (repeatable). The table says so,\n"
          "and lies in a folder of its own")
      ->type_name("KEY=VALUE")
      ->one_at_a_time();
  command->add_option("--out", arguments->out, "The folder for everything (default: runs/reproduce)")
      ->type_name("DIR");
  command->add_option("--data-dir", arguments->data_dir, "Where to look for data first")->type_name("DIR");
  command
      ->add_option("--recipes", arguments->recipes,
                   "The folder of recipes (default: ./recipes, then the installed one)")
      ->type_name("DIR");
  command->add_option("--threads", arguments->threads, "Clients trained at once (default: one per processor)")
      ->between(1, 4096);
  command
      ->add_option("--jobs", arguments->jobs,
                   "Rows and seeds at once (default: 1; with --device cuda 4, which share the GPU)")
      ->between(1, 256);
  add_device_option(command, &arguments->device);
  command->add_flag("--quiet", arguments->quiet, "No progress");
  command->footer(
      "Writes DIR/PAPER-TABLE/table.html, table.md, table.csv and table.tex, and a run's folder for every\n"
      "cell under DIR/cells, which tables share. The clients of a row and seed are trained once; the methods fuse the\n"
      "same uploads. Finished runs are kept: after Ctrl-C or a crash the same command goes on.\n"
      "Example: bitfed reproduce fedtmos:table1 --rows 'mnist/*'");
  command->callback([arguments] { reproduce(*arguments); });
}

}  // namespace bitfed::cli
