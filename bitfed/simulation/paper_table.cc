#include "bitfed/simulation/paper_table.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/config.h"
#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/federated/method.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr double kMaxFigure = 1e12;

template <typename Entry>
std::vector<std::string> names_of(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  for (const Entry& entry : entries) names.emplace_back(entry.name);
  return names;
}

void refuse_second(const Config& config, const char* key, const std::string& name,
                   std::set<std::string>* names) {
  if (!names->insert(name).second) {
    throw input_error("{}: found '{}' a second time, expected each once", config.where(key), name);
  }
}

std::string known_method(const Config& config, const char* key) {
  const std::string name = config.required_string(key);
  const std::vector<std::string> known = names_of(methods());
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw input_error("{}: no method is called '{}'{}", config.where(key), name, suggestion(name, known));
  }
  return name;
}

Metric known_metric(const Config& config) {
  config.required_string("metric");
  const std::string name = config.choice("metric", "", names_of(metrics()));
  return *std::find_if(metrics().begin(), metrics().end(),
                       [&](const Metric& metric) { return metric.name == name; });
}

std::vector<std::string> assignments(const Config& config, const char* key) {
  std::vector<std::string> all = config.texts(key);
  for (const std::string& text : all) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw input_error("{}: found '{}', expected key=value, as in model.clauses=300", config.where(key),
                        text);
    }
  }
  return all;
}

std::vector<PaperColumn> read_columns(const Config& definition) {
  std::vector<PaperColumn> columns;
  std::set<std::string> keys;
  std::set<std::string> names;
  for (const Config& config : definition.sections("column")) {
    PaperColumn& column = columns.emplace_back();
    column.key = config.required_string("key");
    refuse_second(config, "key", column.key, &keys);
    column.name = config.required_string("name");
    refuse_second(config, "name", column.name, &names);
    if (config.has("method")) column.method = known_method(config, "method");
    if (column.method.empty() != columns.front().method.empty()) {
      throw input_error("{}: expected a method in every column, or in none", config.where("method"));
    }
    column.metric = known_metric(config);
    column.against = config.text("against", "");
  }
  if (columns.empty())
    throw input_error("{}: found none, expected [[column]] tables", definition.where("column"));
  return columns;
}

// A column can only be compared with published figures of the same metric.
void check_against(const Config& definition, const std::vector<PaperColumn>& columns) {
  const std::vector<Config> configs = definition.sections("column");
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::string& key = columns[i].against;
    if (key.empty()) continue;
    const auto other = std::find_if(columns.begin(), columns.end(),
                                    [&](const PaperColumn& column) { return column.key == key; });
    if (other == columns.end() || !other->against.empty() || other->metric.name != columns[i].metric.name) {
      throw input_error(
          "{}: found '{}', expected the key of a column with figures of its own and metric '{}'",
          configs[i].where("against"), key, columns[i].metric.name);
    }
  }
}

std::optional<PaperFigure> read_figure(const Config& paper, const PaperColumn& column) {
  if (!column.against.empty() || !paper.has(column.key)) return std::nullopt;
  const std::vector<double> values = paper.numbers(column.key, {}, 0, kMaxFigure);
  if (values.empty() || values.size() > 2) {
    throw input_error("{}: found {} values, expected [mean] or [mean, standard deviation]",
                      paper.where(column.key), values.size());
  }
  return PaperFigure{values[0], values.size() == 2 ? values[1] : 0};
}

PaperRow read_row(const Config& config, const PaperTable& table) {
  PaperRow row;
  row.name = config.required_string("name");
  const auto parts = static_cast<size_t>(std::count(row.name.begin(), row.name.end(), '/')) + 1;
  if (parts != table.row_header.size()) {
    throw input_error("{}: found '{}', expected {} part{} set apart by '/', as row_header has",
                      config.where("name"), row.name, table.row_header.size(),
                      table.row_header.size() == 1 ? "" : "s");
  }
  row.recipe = config.required_string("recipe");
  row.set = assignments(config, "set");
  const Config paper = config.section("paper");
  for (const PaperColumn& column : table.columns) row.paper.push_back(read_figure(paper, column));
  return row;
}

void read_rows(const Config& definition, PaperTable* table) {
  std::set<std::string> names;
  for (const Config& config : definition.sections("row")) {
    table->rows.push_back(read_row(config, *table));
    refuse_second(config, "name", table->rows.back().name, &names);
  }
  if (table->rows.empty())
    throw input_error("{}: found none, expected [[row]] tables", definition.where("row"));
}

std::vector<int64_t> read_seeds(const Config& definition) {
  std::vector<int64_t> seeds = definition.integers("seeds", {0}, 0, INT64_MAX);
  if (seeds.empty() || std::set<int64_t>(seeds.begin(), seeds.end()).size() != seeds.size()) {
    throw input_error("{}: found [{}], expected one seed or more, each once", definition.where("seeds"),
                      fmt::join(seeds, ", "));
  }
  return seeds;
}

std::vector<std::string> read_row_header(const Config& definition) {
  std::vector<std::string> header = definition.texts("row_header");
  if (header.empty()) {
    throw input_error(
        "{}: found none, expected what the parts of the rows' names are, as [\"data\", \"split\"]",
        definition.where("row_header"));
  }
  return header;
}

// "fedtmos:table1" lies in papers/fedtmos-table1.toml.
std::string file_name(std::string name) {
  if (const size_t colon = name.rfind(':'); colon != std::string::npos) name[colon] = '-';
  return name + ".toml";
}

std::string table_name(const fs::path& file) {
  std::string name = file.stem().string();
  if (const size_t dash = name.rfind('-'); dash != std::string::npos) name[dash] = ':';
  return name;
}

bool is_name(const std::string& name) {
  const auto fine = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == ':'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), fine);
}

}  // namespace

PaperTable parse_paper_table(std::string_view text, const std::string& file) {
  const Config definition = Config::parse(text, file);
  PaperTable table;
  table.name = table_name(file);
  table.recipes = fs::path(file).parent_path().parent_path();
  table.source_file = file;
  table.title = definition.required_string("title");
  table.source = definition.text("source", "");
  table.row_header = read_row_header(definition);
  table.seeds = read_seeds(definition);
  table.set = assignments(definition, "set");
  table.quick = assignments(definition, "quick");
  if (definition.has("clients_from")) table.clients_from = known_method(definition, "clients_from");
  table.notes = definition.texts("notes");
  table.columns = read_columns(definition);
  check_against(definition, table.columns);
  read_rows(definition, &table);
  definition.reject_unknown_keys();
  return table;
}

std::vector<std::string> paper_table_names(std::span<const fs::path> folders) {
  std::set<std::string> names;
  for (const fs::path& folder : folders) {
    std::error_code code;
    for (const auto& entry : fs::directory_iterator(folder / "papers", code)) {
      if (entry.path().extension() == ".toml") names.insert(table_name(entry.path()));
    }
  }
  return {names.begin(), names.end()};
}

PaperTable load_paper_table(const std::string& name, std::span<const fs::path> folders) {
  std::vector<std::string> looked_in;
  for (const fs::path& folder : folders) {
    const fs::path file = folder / "papers" / file_name(name);
    std::error_code code;
    if (is_name(name) && fs::exists(file, code))
      return parse_paper_table(read_text_file(file), file.string());
    looked_in.push_back((folder / "papers").string());
  }
  throw input_error("no table is called '{}'{}; looked for {} in {}", name,
                    suggestion(name, paper_table_names(folders)), file_name(name),
                    fmt::join(looked_in, ", "));
}

bool selects_row(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0 ||
         fnmatch((pattern + "/*").c_str(), name.c_str(), 0) == 0;
}

std::vector<size_t> select_rows(const PaperTable& table, std::span<const std::string> patterns) {
  const auto selects = [&](const std::string& pattern) {
    return [&](const PaperRow& row) { return selects_row(pattern, row.name); };
  };
  for (const std::string& pattern : patterns) {
    if (std::any_of(table.rows.begin(), table.rows.end(), selects(pattern))) continue;
    throw input_error("--rows {}: selects no row of {}{}", pattern, table.name,
                      suggestion(pattern, names_of(table.rows)));
  }
  std::vector<size_t> rows;
  for (size_t i = 0; i < table.rows.size(); ++i) {
    const auto selected = [&](const std::string& pattern) {
      return selects_row(pattern, table.rows[i].name);
    };
    if (patterns.empty() || std::any_of(patterns.begin(), patterns.end(), selected)) rows.push_back(i);
  }
  return rows;
}

std::vector<int64_t> select_seeds(const PaperTable& table, std::span<const int64_t> seeds) {
  for (const int64_t seed : seeds) {
    if (std::find(table.seeds.begin(), table.seeds.end(), seed) == table.seeds.end()) {
      throw input_error("--seeds {}: not a seed of {}, expected some of {}", seed, table.name,
                        fmt::join(table.seeds, ", "));
    }
  }
  return seeds.empty() ? table.seeds : std::vector<int64_t>(seeds.begin(), seeds.end());
}

}  // namespace bitfed
