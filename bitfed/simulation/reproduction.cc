#include "bitfed/simulation/reproduction.h"

#include <fmt/format.h>

#include <algorithm>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/data/partition/partition.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMax = INT32_MAX;

// Runs `action`; adds the row to its errors.
template <typename Action>
auto in_row(const PaperTable& table, const ReproductionCell& cell, Action action) {
  try {
    return action();
  } catch (const Error& error) {
    if (error.kind() == Error::Kind::kStopped) throw;
    throw Error(error.kind(),
                fmt::format("{}: row '{}': {}", table.source_file, table.rows[cell.row].name, error.what()));
  }
}

Config recipe_of(const PaperTable& table, const ReproductionOptions& options, const ReproductionCell& cell) {
  const PaperRow& row = table.rows[cell.row];
  Config recipe = Config::load(table.recipes / row.recipe);
  recipe.set_all(table.set);
  recipe.set_all(row.set);
  if (options.quick) recipe.set_all(table.quick);
  recipe.set_all(options.set);
  recipe.set("seed", std::to_string(cell.seed));
  if (!cell.method.empty()) recipe.set("method.name", cell.method);
  return recipe;
}

int64_t clauses_of(const Config& model) {
  int64_t sum = 0;
  for (const Config& member : model.sections("member")) sum += member.integer("clauses", 100, 1, kMax);
  return sum > 0 ? sum : model.integer("clauses", 100, 1, kMax);
}

// "Dir(0.1), 10 clients" -> "dir0.1-10-clients".
std::string for_a_folder(const std::string& text) {
  std::string name;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_') {
      name += static_cast<char>(std::tolower(c));
    } else if (c == ' ') {
      name += '-';
    }
  }
  return name;
}

// Reads only the keys that decide the folder's name and the cost: checking the rest needs the data.
void look_into_recipe(const PaperTable& table, const ReproductionOptions& options, ReproductionCell* cell) {
  const Config recipe = recipe_of(table, options, *cell);
  const std::string digest = sha256_hex(recipe.given()).substr(0, 8);
  cell->method = recipe.section("method").required_string("name");
  const Config data = recipe.section("data");
  cell->dataset = data.text("name", "");
  const int64_t epochs = recipe.section("client").integer("epochs", 30, 1, kMax);
  if (cell->dataset.empty()) cell->file = data.required_string(data.has("folder") ? "folder" : "file");
  const std::string dataset = cell->dataset.empty() ? fs::path(cell->file).stem().string() : cell->dataset;
  const std::string partition = describe(read_partition(data.section("partition")));
  cell->folder = options.cells / for_a_folder(fmt::format("{}-{}-seed-{}-{}-epochs-{}-{}", dataset, partition,
                                                          cell->seed, epochs, cell->method, digest));
  const auto clauses = static_cast<double>(clauses_of(recipe.section("model")));
  const auto passes = static_cast<double>(epochs * recipe.integer("rounds", 1, 1, kMax));
  // Fusing and evaluating take about as long as one pass.
  cell->cost = clauses * (cell->reuse.empty() ? passes + 1 : 1);
  cell->kind = table.rows[cell->row].recipe + (cell->reuse.empty() ? "" : ", clients reused");
}

// The method that trains comes first.
std::vector<std::string> methods_of(const PaperTable& table) {
  std::vector<std::string> names;
  if (!table.clients_from.empty()) names.push_back(table.clients_from);
  for (const PaperColumn& column : table.columns) {
    if (std::find(names.begin(), names.end(), column.method) == names.end()) names.push_back(column.method);
  }
  return names;
}

}  // namespace

std::vector<int64_t> seeds_of(const PaperTable& table, const ReproductionOptions& options) {
  return options.quick ? std::vector<int64_t>{table.seeds.front()} : table.seeds;
}

std::vector<ReproductionCell> plan_cells(const PaperTable& table, const ReproductionOptions& options) {
  std::vector<ReproductionCell> cells;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    for (const int64_t seed : seeds_of(table, options)) {
      fs::path trained;
      for (const std::string& method : methods_of(table)) {
        ReproductionCell cell;
        cell.row = row;
        cell.seed = seed;
        cell.method = method;
        cell.reuse = trained;
        in_row(table, cell, [&] { look_into_recipe(table, options, &cell); });
        if (method == table.clients_from) trained = cell.folder;
        cells.push_back(std::move(cell));
      }
    }
  }
  return cells;
}

Experiment load_cell(const PaperTable& table, const ReproductionOptions& options,
                     const ReproductionCell& cell, const ExperimentOptions& experiment) {
  return in_row(table, cell, [&] {
    return load_experiment(recipe_of(table, options, cell), experiment.data_dir,
                           fs::path(table.rows[cell.row].recipe).stem().string(), ClientsAre::kSimulated,
                           experiment.trainers.get());
  });
}

ExperimentResult run_cell(const PaperTable& table, const ReproductionOptions& options,
                          const ReproductionCell& cell, ExperimentOptions experiment, const EventSink& events,
                          const RunExperiment& run) {
  return in_row(table, cell, [&] {
    experiment.out = cell.folder;
    experiment.reuse = cell.reuse;
    experiment.existing = RunFolderWriter::Existing::kResume;
    experiment.default_name = fs::path(table.rows[cell.row].recipe).stem().string();
    if (run) return run(load_cell(table, options, cell, experiment), experiment, events);
    return run_experiment(recipe_of(table, options, cell), experiment, events);
  });
}

std::optional<RunSummary> finished_summary(const ReproductionCell& cell) {
  std::error_code code;
  if (!fs::exists(cell.folder / "summary.json", code)) return std::nullopt;
  return read_summary(cell.folder);
}

}  // namespace bitfed
