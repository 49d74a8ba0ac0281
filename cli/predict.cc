#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/zoo/model_file.h"
#include "cli/commands.h"
#include "cli/scored_rows.h"

namespace bitfed::cli {
namespace {

struct PredictArguments {
  std::string model;
  RowsRequest request;
  std::string out;
  unsigned threads = 0;
  bool json = false;
};

// A table may show fewer classes than the model knows, and in another order: its labels become the model's.
void match_classes(const ModelFile& file, Dataset* data) {
  std::vector<uint16_t> translated;
  for (const std::string& name : data->class_names) {
    const auto found = std::find(file.class_names.begin(), file.class_names.end(), name);
    if (found == file.class_names.end()) {
      throw input_error("{}: class '{}' is not one that the model knows", data->name, name);
    }
    translated.push_back(static_cast<uint16_t>(found - file.class_names.begin()));
  }
  for (uint16_t& label : data->labels) label = translated[label];
  data->class_names = file.class_names;
}

// Arrays without names have numbered columns.
bool are_numbered(const std::vector<std::string>& columns) {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] != fmt::format("column {}", i + 1)) return false;
  }
  return true;
}

// The columns of a table that the model takes, found by name; without names on either side by their order.
void match_columns(const ModelFile& file, Dataset* data) {
  const size_t width = data->columns.size();
  if (!data->is_table() || data->columns == file.columns || are_numbered(file.columns) ||
      are_numbered(data->columns))
    return;
  std::vector<size_t> chosen;
  for (const std::string& name : file.columns) {
    const auto found = std::find(data->columns.begin(), data->columns.end(), name);
    if (found == data->columns.end()) {
      throw input_error("{}: has no column '{}', an input of the model{}", data->name, name,
                        suggestion(name, data->columns));
    }
    chosen.push_back(static_cast<size_t>(found - data->columns.begin()));
  }
  std::vector<float> values;
  values.reserve(data->size() * chosen.size());
  for (size_t row = 0; row < data->size(); ++row) {
    for (const size_t column : chosen) values.push_back(data->values[row * width + column]);
  }
  data->values = std::move(values);
  data->columns = file.columns;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? "\"\"" : std::string(1, c);
  return result + "\"";
}

void write_csv(const std::string& path, const ModelFile& file, const Dataset& data,
               const std::vector<uint16_t>& predicted) {
  std::string text = "sample,predicted,true\n";
  for (size_t i = 0; i < predicted.size(); ++i) {
    text += fmt::format("{},{},{}\n", i, quoted(file.class_names[predicted[i]]),
                        quoted(file.class_names[data.labels[i]]));
  }
  write_file_atomically(path, text);
}

void predict_file(const PredictArguments& arguments) {
  const ModelFile file = read_model_file(arguments.model);
  ScoredRows scored = load_scored_rows(arguments.request, file);
  Dataset& data = scored.data;
  match_columns(file, &data);
  match_classes(file, &data);
  if (data.dropped_rows > 0) {
    fmt::print(stderr, "{}: {} left out for empty cells; samples are counted without them\n", data.name,
               data.dropped_rows == 1 ? "1 row" : fmt::format("{} rows", data.dropped_rows));
  }
  ThreadPool pool(arguments.threads);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<uint16_t> predicted = predict(*file.model, data, pool);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  size_t right = 0;
  for (size_t i = 0; i < predicted.size(); ++i) right += predicted[i] == data.labels[i];
  const double accuracy =
      static_cast<double>(right) / static_cast<double>(std::max<size_t>(1, predicted.size()));
  if (!arguments.out.empty()) write_csv(arguments.out, file, data, predicted);
  if (arguments.json) {
    const nlohmann::ordered_json json = {{"model", arguments.model},    {"data", data.name},
                                         {"rows", scored.rows},         {"scored", scored.about},
                                         {"samples", predicted.size()}, {"accuracy", accuracy},
                                         {"seconds", seconds}};
    fmt::print("{}\n", json.dump(1));
  } else {
    fmt::print("scored: {}\n", scored.about);
    fmt::print("{} of {} right: {:.2f} %  ({:.0f} samples/s on {} threads)\n", right, predicted.size(),
               100 * accuracy, static_cast<double>(predicted.size()) / std::max(seconds, 1e-9), pool.size());
  }
}

}  // namespace

void add_predict(Command& app) {
  auto arguments = std::make_shared<PredictArguments>();
  Command* command = app.add_subcommand("predict", "Predict with a model and print its accuracy");
  command->add_option("MODEL", arguments->model, "A model.safetensors of a run")->required();
  RowsRequest& request = arguments->request;
  command
      ->add_option("--data", request.data,
                   "A built-in data set, a file or folder of samples, or a recipe whose [data] is read\n"
                   "(default: the data that the model was trained on)")
      ->type_name("NAME-or-PATH");
  command->add_option("--data-dir", request.data_dir, "Where to look for data first")->type_name("DIR");
  command
      ->add_option("--rows", request.rows,
                   "Which rows are scored. Default: of the run's own data and of built-in sets the test\n"
                   "rows, as the run had them; of any other file all")
      ->one_of({"test", "validation", "train", "all"});
  command->add_option("--label", request.label, "CSV: the column with the classes (default: the recipe's)");
  command->add_option("--person", request.person, "CSV: the column with the person, which is no input");
  command->add_option("--ignore", request.ignore, "CSV: columns that are no inputs, as a,b");
  command->add_option("--out", arguments->out, "Write every prediction to this CSV file")
      ->type_name("FILE.csv");
  command->add_option("--threads", arguments->threads, "Default: one per processor")->between(1, 4096);
  command->add_flag("--json", arguments->json, "One JSON document");
  command->footer(
      "Columns of a table are found by their names, in any order; others are left out. Models of earlier\n"
      "builds do not know names: they take the columns in order, and --ignore says which to leave out.");
  command->callback([arguments] { predict_file(*arguments); });
}

}  // namespace bitfed::cli
