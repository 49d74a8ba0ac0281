#include "bitfed/federated/experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <set>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/base/names.h"
#include "bitfed/data/catalog/catalog.h"
#include "bitfed/data/check_split.h"
#include "bitfed/zoo/network/trainer.h"

namespace bitfed {
namespace {

std::string read_name(const Config& recipe, const std::string& fallback) {
  const std::string name = recipe.text("name", fallback);
  const auto fine = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  if (name.empty() || name[0] == '.' || !std::all_of(name.begin(), name.end(), fine)) {
    throw input_error("{}: found '{}', expected letters, digits, '-', '_' and '.'", recipe.where("name"),
                      name);
  }
  return name;
}

uint64_t read_seed(const Config& recipe) {
  return static_cast<uint64_t>(recipe.integer("seed", 0, 0, INT64_MAX));
}

void read_data(const Config& data, DataSplit split, bool partitioned, Experiment* experiment) {
  check_split(split);
  experiment->partition_spec = read_partition(data.section("partition"));
  if (partitioned) {
    experiment->partition = make_partition(split.train, experiment->partition_spec, experiment->seed);
    experiment->clients = static_cast<uint32_t>(experiment->partition.size());
    experiment->partition_spec.clients = experiment->clients;
  }
  const std::string evaluate = data.choice("evaluate", "all", evaluation_kinds());
  const std::vector<uint16_t> tested = split.test.labels;
  experiment->evaluation = evaluation_data(std::move(split.test), evaluate);
  experiment->train = std::move(split.train);
  experiment->data_notes = std::move(split.notes);
  if (const std::string lost = classes_left_out(tested, experiment->evaluation.test); !lost.empty()) {
    experiment->data_notes.push_back(
        fmt::format("evaluate = \"{}\" leaves no test samples of: {}. The test set is sorted by class; "
                    "evaluate = \"stratified-half\" halves each class by itself",
                    evaluate, lost));
  }
  if (experiment->evaluation.test.size() == 0)
    throw input_error("{}: no samples to test on", experiment->train.name);
}

// A threshold that no pixel exceeds, as with images of 0 and 1, makes every bit 0.
void check_threshold(const Config& data, const Dataset& train) {
  if (train.size() == 0 || train.is_table() || !data.has("booleanize")) return;
  const Config booleanize = data.section("booleanize");
  if (booleanize.text("kind", "") != "threshold") return;
  const int64_t level = booleanize.integer("level", 0);
  if (std::any_of(train.pixels.begin(), train.pixels.end(), [&](uint8_t pixel) { return pixel > level; }))
    return;
  throw input_error(
      "{}: found no pixel above {}, the level of data.booleanize, which makes every bit 0; images of 0 and 1 "
      "need booleanize = {{ kind = \"threshold\", level = 0 }}",
      train.name, level);
}

// Clients that have withdrawn.
std::vector<uint32_t> read_without(const Config& federation, int64_t clients) {
  const std::vector<int64_t> given = federation.integers("without", {}, 0, clients - 1);
  const std::set<uint32_t> without(given.begin(), given.end());
  if (without.size() == static_cast<size_t>(clients))
    throw input_error("{}: found all {} clients, expected fewer", federation.where("without"), clients);
  return {without.begin(), without.end()};
}

void read_federation(const Config& federation, Experiment* experiment) {
  const auto clients = static_cast<int64_t>(experiment->clients);
  int64_t chosen = clients;
  if (federation.has("fraction")) {
    if (federation.has("clients_per_round")) {
      throw input_error("{}: found beside clients_per_round, expected one of the two",
                        federation.where("fraction"));
    }
    const double fraction = federation.number("fraction", 1, 1e-9, 1);
    chosen = std::max<int64_t>(1, static_cast<int64_t>(fraction * static_cast<double>(clients) + 0.5));
  } else {
    chosen = federation.integer("clients_per_round", clients, 1, clients);
  }
  experiment->clients_per_round = static_cast<uint32_t>(chosen);
  experiment->dropout = federation.number("dropout", 0, 0, 1);
  // Read only where they are given: earlier runs were recorded without them.
  if (federation.has("without")) experiment->without = read_without(federation, clients);
  if (federation.has("evaluate_every"))
    experiment->evaluate_every = static_cast<uint32_t>(federation.integer("evaluate_every", 1, 1));
  const std::vector<std::string> choices = {"last", "validation"};
  experiment->select_by_validation = federation.choice("select", "last", choices) == "validation";
  if (experiment->select_by_validation && experiment->evaluation.validation.size() == 0) {
    throw input_error(
        "{}: found 'validation', which needs data.evaluate = \"second-half\" or \"stratified-half\"",
        federation.where("select"));
  }
}

void read_policy(const Config& federation, Experiment* experiment) {
  if (experiment->dropout > 0) {
    throw input_error("{}: found {}, expected 0: clients that drop out are simulated by bitfed run alone",
                      federation.where("dropout"), experiment->dropout);
  }
  RoundPolicy& policy = experiment->policy;
  const int64_t clients = experiment->clients;
  policy.minimum_clients = static_cast<uint32_t>(federation.integer("minimum_clients", clients, 1, clients));
  policy.quorum = federation.number("quorum", 1, 1e-9, 1);
  policy.deadline_seconds = federation.number("deadline_seconds", 0, 0, 1e9);
  const auto key = federation.name_in_use("min_answers", "least_answers");
  policy.min_answers = static_cast<uint32_t>(federation.integer(key, 1, 1, experiment->clients_per_round));
}

// What the samples alone do not tell of data that has no name: who they belong to decides a partition.
std::string groups_text(const Config& data, const Dataset& train) {
  if (train.groups.empty() || data.has("name") || names_files(data)) return "";
  const auto* bytes = reinterpret_cast<const uint8_t*>(train.groups.data());
  return fmt::format("groups = {}\n", sha256_hex({bytes, train.groups.size() * sizeof(uint32_t)}));
}

// Of `before` and these.
uLong checksum(uLong before, const std::vector<uint32_t>& numbers) {
  return crc32_z(before, reinterpret_cast<const Bytef*>(numbers.data()), numbers.size() * sizeof(uint32_t));
}

// Throws for unknown keys. With another method or model than the recipe's (--set method.name=...), the
// recipe's keys for the one that was replaced are dropped instead, and named in a note.
void check_keys(const Config& recipe, Experiment* experiment) {
  const bool another_model = recipe.section("model").is_replaced();
  if (another_model) recipe.section("data").allow_dropping(std::vector<std::string>{"booleanize"});
  if (another_model || recipe.section("method").is_replaced())
    recipe.allow_dropping(std::vector<std::string>{"client", "federation"});
  experiment->dropped_keys = recipe.reject_unknown_keys();
  if (experiment->dropped_keys.empty()) return;
  experiment->data_notes.push_back(fmt::format(
      "keys of the recipe that --set made meaningless were ignored: {}", joined(experiment->dropped_keys)));
}

}  // namespace

std::string fingerprint(const Dataset& dataset) {
  const auto* bytes =
      dataset.is_table() ? reinterpret_cast<const Bytef*>(dataset.values.data()) : dataset.pixels.data();
  const size_t size = dataset.is_table() ? dataset.values.size() * sizeof(float) : dataset.pixels.size();
  const auto* labels = reinterpret_cast<const uint8_t*>(dataset.labels.data());
  return fmt::format("{:08x}-{}", crc32_z(0, bytes, size),
                     sha256_hex({labels, dataset.labels.size() * sizeof(uint16_t)}).substr(0, 16));
}

std::string data_text(const Experiment& experiment) {
  const auto line = [](const char* name, const Dataset& dataset) {
    uLong names = 0;
    for (const std::string& group : dataset.group_names)  // with the 0 at its end
      names = crc32_z(names, reinterpret_cast<const Bytef*>(group.c_str()), group.size() + 1);
    return fmt::format("{} samples = {}\n{} groups = {:08x}-{:08x}\n", name, fingerprint(dataset), name,
                       checksum(0, dataset.groups), names);
  };
  uLong clients = 0;
  for (const std::vector<uint32_t>& samples : experiment.partition) {
    const std::vector<uint32_t> size = {static_cast<uint32_t>(samples.size())};
    clients = checksum(checksum(clients, size), samples);
  }
  return line("train", experiment.train) + line("test", experiment.evaluation.test) +
         line("validation", experiment.evaluation.validation) + fmt::format("partition = {:08x}\n", clients);
}

Experiment read_experiment(const Config& recipe, DataSplit data, const std::string& default_name,
                           ClientsAre clients, const MakeMethod& make) {
  Experiment experiment;
  experiment.name = read_name(recipe, default_name);
  experiment.seed = read_seed(recipe);
  const Config federation = recipe.section("federation");
  const bool real = clients == ClientsAre::kReal;
  // Where clients bring their own data, the recipe says how many they are instead of how to deal samples.
  const bool own_data = real && federation.has("clients");
  if (own_data) experiment.clients = static_cast<uint32_t>(federation.integer("clients", 1, 1, 1000000));
  read_data(recipe.section("data"), std::move(data), !own_data, &experiment);
  const Dataset prototype = subset(experiment.train, {});
  read_federation(federation, &experiment);
  const bool differential = has_differential_privacy(recipe);
  // Where each client is drawn by itself, all may be.
  const uint32_t most =
      differential && !clients_add_noise(recipe) ? experiment.clients : experiment.clients_per_round;
  experiment.method = make({.recipe = recipe,
                            .prototype = prototype,
                            .seed = experiment.seed,
                            .clients = most,
                            .sampling = {experiment.clients, experiment.clients_per_round},
                            .served = real});
  experiment.privacy = read_privacy(recipe, most);
  experiment.rounds = static_cast<uint32_t>(
      recipe.integer("rounds", experiment.method->default_rounds(), 1, experiment.method->max_rounds()));
  if (differential) {
    experiment.differential_privacy = read_differential_privacy(
        recipe, {experiment.clients, experiment.clients_per_round, experiment.rounds});
  }
  experiment.served = real;
  if (real) {
    read_policy(federation, &experiment);
  } else {
    const std::vector<std::string> of_real_ones = {"clients",          "minimum_clients", "quorum",
                                                   "deadline_seconds", "min_answers",     "least_answers"};
    federation.permit(of_real_ones);
  }
  check_keys(recipe, &experiment);
  if (!experiment.without.empty()) {
    experiment.data_notes.push_back(
        fmt::format("without the clients of federation.without: {}", fmt::join(experiment.without, ", ")));
  }
  experiment.recipe = recipe.resolved();
  const Config resolved = Config::parse(experiment.recipe, "the recipe as resolved");
  experiment.method_name = resolved.section("method").text("name", "");
  experiment.model_name = resolved.section("model").text("name", "");
  check_threshold(resolved.section("data"), experiment.train);
  const std::vector<std::string> of_data = {"seed", "data"};
  const Config source = recipe.section("data");
  if (source.has("name") || names_files(source)) experiment.data = recipe.resolved(of_data);
  experiment.fingerprint = fingerprint(experiment.train);
  if (names_files(source)) experiment.trained_on = experiment.fingerprint;
  const std::vector<std::string> parts = {"data", "model", "client"};
  experiment.depends_on = fmt::format(
      "client = {}\nseed = {}\ndata = {}\n{}{}", experiment.method->client_key(), experiment.seed,
      experiment.fingerprint, groups_text(recipe.section("data"), experiment.train), recipe.resolved(parts));
  return experiment;
}

Experiment load_experiment(const Config& recipe, const std::string& data_dir, const std::string& default_name,
                           ClientsAre clients, const Trainers* trainers) {
  read_name(recipe, default_name);  // a mistake in it need not wait for the data
  DataSplit data = load_data(recipe.section("data"), data_dir, read_seed(recipe));
  const auto make = [trainers](MethodContext context) {
    context.trainers = trainers;
    return make_method(context);
  };
  Experiment experiment = read_experiment(recipe, std::move(data), default_name, clients, make);
  if (trainers != nullptr && experiment.method->make_client()->cohort() > 1)
    experiment.device = trainers->device;
  return experiment;
}

std::string partition_text(const Experiment& experiment) {
  if (!experiment.partition.empty()) return describe(experiment.partition_spec);
  return fmt::format("their own, {} clients", experiment.clients);
}

RunStarted started_event(const Experiment& experiment) {
  RunStarted event;
  event.name = experiment.name;
  event.method = experiment.method_name;
  event.dataset = experiment.train.name;
  event.partition = partition_text(experiment);
  event.clients = experiment.clients;
  event.clients_per_round = experiment.clients_per_round;
  event.rounds = experiment.rounds;
  event.train_samples = experiment.train.size();
  event.test_samples = experiment.evaluation.test.size();
  if (experiment.train.dropped_rows > 0) event.dropped_rows = experiment.train.dropped_rows;
  if (!experiment.dropped_keys.empty()) event.dropped_keys = experiment.dropped_keys;
  return event;
}

}  // namespace bitfed
