#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/bits/kernels.h"
#include "bitfed/model/booleanizer_json.h"
#include "bitfed/report/charts/clause_logic.h"
#include "bitfed/report/humanise.h"
#include "bitfed/report/pages/aligned.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "bitfed/zoo/mlp_model.h"
#include "bitfed/zoo/model_file.h"
#include "bitfed/zoo/network/network_model.h"
#include "cli/commands.h"

namespace bitfed::cli {
namespace {

struct InspectArguments {
  std::string model;
  size_t clauses = 3;
  bool json = false;
};

// Each layer's share of the time, in percent; "-" where it was not measured.
std::vector<std::string> shares(const std::vector<double>& seconds, size_t count) {
  std::vector<std::string> texts(count, "-");
  const double whole = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  for (size_t i = 0; i < seconds.size(); ++i) texts[i] = fmt::format("{:.0f} %", 100 * seconds[i] / whole);
  return texts;
}

// Clauses that can fire: with a literal and a weight.
size_t live_clauses(const TsetlinMember& member) {
  size_t live = 0;
  for (size_t row = 0; row < member.weights.size(); ++row) {
    live += member.weights[row] != 0 &&
            kernels().count_bits(member.actions.row(row), member.actions.stride()) > 0;
  }
  return live;
}

uint64_t member_bytes(const TsetlinMember& member) {
  return member.actions.rows() * ((member.actions.columns() + 7) / 8 + sizeof(int32_t));
}

nlohmann::ordered_json member_json(const TsetlinMember& member) {
  const uint64_t literals = included_literals(member);
  return {{"booleanizer", booleanizer_to_json(member.booleanizer)},
          {"patch", {member.shape.patch_height, member.shape.patch_width}},
          {"patches", member.shape.patches()},
          {"clauses_per_class", member.clauses},
          {"live_clauses", live_clauses(member)},
          {"literals", member.shape.literals()},
          {"included_literals", literals},
          {"bytes", member_bytes(member)},
          {"binary_ops", literals * member.shape.patches()}};
}

nlohmann::ordered_json machines_json(const TsetlinModel& model) {
  nlohmann::ordered_json machines = nlohmann::ordered_json::array();
  const std::vector<double> seconds = measure_members(model);
  for (size_t i = 0; i < seconds.size(); ++i) {
    machines.push_back(member_json(model.members()[i]));
    machines.back()["seconds"] = seconds[i];
  }
  return machines;
}

void print_members(const TsetlinModel& model) {
  TextRows rows = {{"  machine", "booleanizer", "patch", "clauses per class", "live clauses",
                    "literals per clause", "bytes", "one-bit ops", "time"}};
  const std::vector<std::string> times = shares(measure_members(model), model.members().size());
  for (size_t i = 0; i < model.members().size(); ++i) {
    const TsetlinMember& member = model.members()[i];
    const uint64_t literals = included_literals(member);
    const size_t live = live_clauses(member);
    const double a_clause = live == 0 ? 0 : static_cast<double>(literals) / static_cast<double>(live);
    rows.push_back({fmt::format("  {}", i + 1), member.booleanizer.kind,
                    fmt::format("{} x {}", member.shape.patch_height, member.shape.patch_width),
                    exact_count(member.clauses), exact_count(live), fmt::format("{:.1f}", a_clause),
                    human_bytes(static_cast<double>(member_bytes(member))),
                    human_count(static_cast<double>(literals * member.shape.patches())), times[i]});
  }
  fmt::print("\n{}", aligned(rows));
}

nlohmann::ordered_json layers_json(const MlpModel& model) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  const std::vector<double> seconds = model.measure_layers();
  for (const LayerCosts& layer : model.layer_costs()) {
    layers.push_back({{"name", layer.name},
                      {"shape", {layer.inputs, layer.outputs}},
                      {"bits_per_weight", layer.bits_per_weight},
                      {"weight_bytes", layer.weight_bytes},
                      {"norm_bytes", layer.norm_bytes},
                      {"binary_ops", layer.binary_ops},
                      {"flops", layer.flops},
                      {"seconds", seconds[layers.size()]}});
  }
  return layers;
}

void print_layers(const MlpModel& model) {
  TextRows rows = {
      {"  layer", "in x out", "bits a weight", "weights", "batch norm", "one-bit ops", "real ops", "time"}};
  const std::vector<LayerCosts> layers = model.layer_costs();
  const std::vector<std::string> times = shares(model.measure_layers(), layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerCosts& layer = layers[i];
    rows.push_back({"  " + layer.name, fmt::format("{} x {}", layer.inputs, layer.outputs),
                    std::to_string(layer.bits_per_weight), exact_count(layer.weight_bytes) + " B",
                    exact_count(layer.norm_bytes) + " B", exact_count(layer.binary_ops),
                    exact_count(layer.flops), times[i]});
  }
  fmt::print("\n{}", aligned(rows));
}

nlohmann::ordered_json layers_json(const NetworkModel& model) {
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  const std::vector<double> seconds = model.measure_layers();
  for (const LayerCosts& layer : model.layer_costs()) {
    const size_t i = layers.size();
    layers.push_back({{"name", layer.name},
                      {"shape", {layer.inputs, layer.outputs}},
                      {"places", layer.positions},
                      {"bits_per_weight", layer.bits_per_weight},
                      {"weight_bytes", layer.weight_bytes},
                      {"norm_bytes", layer.norm_bytes},
                      {"binary_ops", layer.binary_ops},
                      {"flops", layer.flops},
                      {"seconds", i < seconds.size() ? nlohmann::ordered_json(seconds[i]) : nullptr}});
  }
  return layers;
}

void print_layers(const NetworkModel& model) {
  TextRows rows = {{"  layer", "in x out", "positions", "bits a weight", "weights", "batch norm",
                    "one-bit ops", "real ops", "time"}};
  const std::vector<LayerCosts> layers = model.layer_costs();
  const std::vector<std::string> times = shares(model.measure_layers(), layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerCosts& layer = layers[i];
    rows.push_back({"  " + layer.name, fmt::format("{} x {}", layer.inputs, layer.outputs),
                    exact_count(layer.positions), std::to_string(layer.bits_per_weight),
                    exact_count(layer.weight_bytes) + " B", exact_count(layer.norm_bytes) + " B",
                    exact_count(layer.binary_ops), exact_count(layer.flops), times[i]});
  }
  fmt::print("\n{}", aligned(rows));
}

void inspect(const InspectArguments& arguments) {
  const ModelFile file = read_model_file(arguments.model);
  const ModelCosts costs = file.model->costs();
  const auto* tsetlin = dynamic_cast<const TsetlinModel*>(file.model.get());
  const auto* perceptron = dynamic_cast<const MlpModel*>(file.model.get());
  const auto* network = dynamic_cast<const NetworkModel*>(file.model.get());
  if (arguments.json) {
    nlohmann::ordered_json json = {{"name", file.name},           {"classes", file.class_names},
                                   {"model_sha256", file.sha256}, {"model_bytes", costs.bytes},
                                   {"flops", costs.flops},        {"binary_ops", costs.binary_ops}};
    if (!file.columns.empty()) json["columns"] = file.columns;
    if (tsetlin != nullptr) json["machines"] = machines_json(*tsetlin);
    if (perceptron != nullptr) json["layers"] = layers_json(*perceptron);
    if (network != nullptr) json["layers"] = layers_json(*network);
    fmt::print("{}\n", json.dump(1));
    return;
  }
  fmt::print(
      "{}\n  classes       {}\n  size          {}\n  prediction    {} one-bit operations, {} real ones\n  "
      "sha256        {}\n",
      file.name.empty() ? arguments.model : file.name, file.class_names.size(),
      human_bytes(static_cast<double>(costs.bytes)), human_count(static_cast<double>(costs.binary_ops)),
      human_count(static_cast<double>(costs.flops)), file.sha256);
  if (!file.columns.empty()) fmt::print("  columns       {}\n", joined(file.columns));
  if (perceptron != nullptr) print_layers(*perceptron);
  if (network != nullptr) print_layers(*network);
  if (tsetlin == nullptr) return;
  print_members(*tsetlin);
  if (arguments.clauses == 0) return;
  fmt::print("\nThe strongest clauses: vote, {}\n\n",
             input_of_model(*tsetlin).is_table()
                 ? "what must hold in the row"
                 : "where in the image, what must hold in the patch: p(row, column)");
  for (const std::string& line :
       strongest_clauses_text(tsetlin->members(), file.class_names, arguments.clauses, file.columns)) {
    fmt::print("{}\n", line);
  }
}

}  // namespace

void add_inspect(Command& app) {
  auto arguments = std::make_shared<InspectArguments>();
  Command* command = app.add_subcommand(
      "inspect", "Look into a model: sizes, operations, its clauses as logic or its layers");
  command->add_option("MODEL", arguments->model, "A model.safetensors of a run")->required();
  command->add_option("--clauses", arguments->clauses, "How many of each class's strongest clauses to show")
      ->show_default()
      ->between(0, 100000);
  command->add_flag("--json", arguments->json, "One JSON document");
  command->callback([arguments] { inspect(*arguments); });
}

}  // namespace bitfed::cli
