#include "cli/scored_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/catalog/own_data.h"
#include "bitfed/data/catalog/split_table.h"
#include "bitfed/data/formats/csv.h"
#include "bitfed/federated/evaluation.h"
#include "bitfed/federated/experiment.h"

namespace bitfed::cli {
namespace {

namespace fs = std::filesystem;

// A recipe's [data], and the seed that splits it.
struct DataRecipe {
  Config data;
  uint64_t seed = 0;
};

DataRecipe data_recipe(const Config& recipe) {
  return {recipe.section("data"), static_cast<uint64_t>(recipe.integer("seed", 0, 0, INT64_MAX))};
}

Dataset joined_parts(Dataset first, const Dataset& second) {
  first.pixels.append(second.pixels);
  first.values.append(second.values);
  first.labels.insert(first.labels.end(), second.labels.begin(), second.labels.end());
  first.groups.insert(first.groups.end(), second.groups.begin(), second.groups.end());
  return first;
}

ScoredRows part_of(DataSplit split, const std::string& evaluate, const std::string& rows,
                   const std::string& name) {
  const size_t all = split.train.size() + split.test.size();
  const size_t dropped = split.train.dropped_rows;
  ScoredRows scored;
  scored.rows = rows.empty() ? "test" : rows;
  if (scored.rows == "train") {
    scored.data = std::move(split.train);
  } else if (scored.rows == "all") {
    scored.data = joined_parts(std::move(split.train), split.test);
  } else {
    EvaluationData parts = evaluation_data(std::move(split.test), evaluate);
    scored.data = std::move(scored.rows == "test" ? parts.test : parts.validation);
  }
  if (scored.data.size() == 0) throw input_error("--rows {}: {} has none", scored.rows, name);
  scored.data.dropped_rows = dropped;
  const std::string rule = evaluate == "all" || scored.rows == "all" || scored.rows == "train"
                               ? ""
                               : fmt::format(" (evaluate = \"{}\")", evaluate);
  scored.about =
      fmt::format("the {} rows of {}{}, {} of {}", scored.rows, name, rule, scored.data.size(), all);
  if (scored.rows == "all") scored.about = fmt::format("all {} rows of {}", all, name);
  return scored;
}

// The data that a recipe describes, in the parts that a run of the recipe has.
ScoredRows load_of_recipe(const RowsRequest& request, const DataRecipe& recipe) {
  DataSplit split = load_data(recipe.data, request.data_dir, recipe.seed);
  const std::string name = split.train.name;
  return part_of(std::move(split), recipe.data.choice("evaluate", "all", evaluation_kinds()), request.rows,
                 name);
}

// All rows of other data than the run's.
ScoredRows all_rows(Dataset data, const RowsRequest& request, const std::string& why) {
  if (!request.rows.empty() && request.rows != "all") {
    throw input_error("--rows {}: {} {}, expected --rows all", request.rows, request.data, why);
  }
  ScoredRows scored;
  scored.rows = "all";
  scored.about = fmt::format("all {} rows of {}, which {}", data.size(), request.data, why);
  scored.data = std::move(data);
  return scored;
}

// The parts of the training run if this is its data: equal training rows. Empty: other data.
template <typename Split>
std::optional<ScoredRows> rows_as_trained(const Split& make_split, const RowsRequest& request,
                                          const DataRecipe& recipe, const ModelFile& file) {
  DataSplit split;
  try {
    split = make_split();
  } catch (const Error&) {
    return std::nullopt;  // samples that cannot be split as the run's are others
  }
  if (fingerprint(split.train) != file.trained_on) return std::nullopt;
  return part_of(std::move(split), recipe.data.choice("evaluate", "all", evaluation_kinds()), request.rows,
                 request.rows == "all" ? request.data : "the run in " + request.data);
}

constexpr const char* kOthers = "is not what the model was trained on";

// Images and arrays.
ScoredRows load_samples(const RowsRequest& request, const std::optional<DataRecipe>& own,
                        const ModelFile& file) {
  const bool is_known = own && names_files(own->data) && !file.trained_on.empty();
  const Config like = own && names_files(own->data) ? own->data : Config::parse("", request.data);
  SamplesAt samples = load_samples_at(like, request.data);
  if (!is_known)
    return all_rows(std::move(samples.all), request, "may hold samples that the model was trained on");
  if (fingerprint(samples.all) == file.trained_on)
    return all_rows(std::move(samples.all), request, "the model was trained on");
  const auto split = [&] { return split_as(own->data, samples, own->seed); };
  if (auto scored = rows_as_trained(split, request, *own, file)) return *std::move(scored);
  return all_rows(std::move(samples.all), request, kOthers);
}

// Columns are found by name; a model of an earlier build does not know its names and takes them in order.
ScoredRows load_table(const RowsRequest& request, const std::optional<DataRecipe>& recipe,
                      const ModelFile& file) {
  const bool has_table = recipe && is_csv(recipe->data);
  CsvOptions options;
  options.label = !request.label.empty() ? request.label : has_table ? recipe->data.text("label", "") : "";
  if (options.label.empty()) {
    throw input_error("--data {}: a CSV file needs --label, the column with the classes", request.data);
  }
  options.ignore = split_names(request.ignore);
  options.only = file.columns;
  for (const std::string& name : options.ignore) {
    if (std::find(options.only.begin(), options.only.end(), name) != options.only.end()) {
      throw input_error("--ignore {}: found an input of the model, expected a column that it does not use",
                        name);
    }
  }
  options.person = request.person;
  const std::string person = has_table ? recipe->data.text("person", "") : "";
  const bool may_be_own =
      has_table && !file.trained_on.empty() && options.label == recipe->data.text("label", "") &&
      (request.person.empty() || request.person == person) && has_columns(request.data, person);
  if (!may_be_own) {
    return all_rows(load_csv(request.data, options), request, "may hold rows that the model was trained on");
  }
  options.person = person;
  Dataset data = load_csv(request.data, options);
  const auto split = [&] { return split_table(data, read_split(recipe->data, {}), recipe->seed); };
  if (auto scored = rows_as_trained(split, request, *recipe, file)) return *std::move(scored);
  return all_rows(std::move(data), request, kOthers);
}

bool is_built_in(const std::string& name) {
  const std::vector<DatasetEntry>& known = datasets();
  return std::any_of(known.begin(), known.end(),
                     [&](const DatasetEntry& entry) { return entry.name == name; });
}

}  // namespace

ScoredRows load_scored_rows(const RowsRequest& request, const ModelFile& file) {
  std::optional<DataRecipe> own;
  if (!file.data.empty()) own = data_recipe(Config::parse(file.data, "the model's recipe"));
  if (request.data.empty()) {
    if (!own) throw input_error("--data: missing, and the model does not say what it was trained on");
    return load_of_recipe(request, *own);
  }
  if (is_built_in(request.data)) {
    if (own && own->data.text("name", "") == request.data) return load_of_recipe(request, *own);
    return part_of(load_dataset(request.data, request.data_dir), "all", request.rows, request.data);
  }
  std::error_code code;
  if (!fs::exists(request.data, code)) find_entry(request.data);  // throws, with the nearest name
  if (fs::path(request.data).extension() == ".toml") {
    return load_of_recipe(request, data_recipe(Config::load(request.data)));
  }
  const bool is_folder = fs::is_directory(request.data, code);
  if (!is_folder && is_csv(Config::parse(fmt::format("file = {:?}", request.data), "--data")))
    return load_table(request, own, file);
  return load_samples(request, own, file);
}

}  // namespace bitfed::cli
