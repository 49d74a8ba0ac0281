#include "bitfed/simulation/experiment.h"

#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>

#include "bitfed/base/digest.h"
#include "bitfed/base/error.h"
#include "bitfed/base/machine.h"
#include "bitfed/bits/kernels.h"
#include "bitfed/data/catalog.h"
#include "bitfed/data/partition.h"
#include "bitfed/federated/federation.h"
#include "bitfed/federated/method.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/simulation/evaluation.h"
#include "bitfed/simulation/in_process_transport.h"
#include "bitfed/simulation/personal_evaluation.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

// Everything that a recipe says, read and checked before anything is written.
struct Experiment {
  std::string name;
  uint64_t seed = 0;
  Dataset train;
  EvaluationData evaluation;
  std::vector<std::string> data_notes;
  PartitionSpec partition_spec;
  Partition partition;
  std::unique_ptr<Method> method;
  uint32_t rounds = 1;
  uint32_t clients_per_round = 1;
  double dropout = 0;
  std::string recipe;      // as resolved
  std::string data;        // of the recipe, what tells which samples of a built-in set are for testing
  std::string depends_on;  // what uploads depend on, see FederationOptions
};

// Changes with any sample: a checksum of the values, a digest of the labels.
std::string fingerprint(const Dataset& dataset) {
  const auto* bytes =
      dataset.is_table() ? reinterpret_cast<const Bytef*>(dataset.values.data()) : dataset.pixels.data();
  const size_t size = dataset.is_table() ? dataset.values.size() * sizeof(float) : dataset.pixels.size();
  const auto* labels = reinterpret_cast<const uint8_t*>(dataset.labels.data());
  return fmt::format("{:08x}-{}", crc32_z(0, bytes, size),
                     sha256_hex({labels, dataset.labels.size() * sizeof(uint16_t)}).substr(0, 16));
}

std::string read_name(const Config& recipe, const std::string& fallback) {
  const std::string name = recipe.text("name", fallback);
  const auto fine = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  if (name.empty() || name[0] == '.' || !std::all_of(name.begin(), name.end(), fine)) {
    throw input_error("{}: found '{}', expected letters, digits, '-', '_' and '.'", recipe.where("name"),
                      name);
  }
  return name;
}

void read_data(const Config& recipe, const ExperimentOptions& options, Experiment* experiment) {
  const Config data = recipe.section("data");
  DataSplit split = load_data(data, options.data_dir, experiment->seed);
  experiment->partition_spec = read_partition(data.section("partition"));
  experiment->partition = make_partition(split.train, experiment->partition_spec, experiment->seed);
  experiment->partition_spec.clients = static_cast<uint32_t>(experiment->partition.size());
  const std::vector<std::string> choices = {"all", "second-half"};
  experiment->evaluation = evaluation_data(std::move(split.test), data.choice("evaluate", "all", choices));
  experiment->train = std::move(split.train);
  experiment->data_notes = std::move(split.notes);
  if (experiment->evaluation.test.size() == 0)
    throw input_error("{}: no samples to test on", experiment->train.name);
}

void read_federation(const Config& recipe, Experiment* experiment) {
  const auto clients = static_cast<int64_t>(experiment->partition.size());
  const Config federation = recipe.section("federation");
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
}

Experiment read_experiment(const Config& recipe, const ExperimentOptions& options) {
  Experiment experiment;
  experiment.name = read_name(recipe, options.default_name);
  experiment.seed = static_cast<uint64_t>(recipe.integer("seed", 0, 0, INT64_MAX));
  read_data(recipe, options, &experiment);
  const Dataset prototype = subset(experiment.train, {});
  experiment.method = make_method({recipe, prototype, experiment.seed});
  experiment.rounds = static_cast<uint32_t>(
      recipe.integer("rounds", experiment.method->default_rounds(), 1, experiment.method->most_rounds()));
  read_federation(recipe, &experiment);
  recipe.reject_unknown_keys();
  experiment.recipe = recipe.resolved();
  const std::vector<std::string> of_data = {"seed", "data"};
  if (recipe.section("data").has("name")) experiment.data = recipe.resolved(of_data);
  const std::vector<std::string> parts = {"data", "model", "client"};
  experiment.depends_on =
      fmt::format("client = {}\nseed = {}\ndata = {}\n{}", experiment.method->client_key(), experiment.seed,
                  fingerprint(experiment.train), recipe.resolved(parts));
  return experiment;
}

Event started_event(const Experiment& experiment, const Config& recipe) {
  Event event = {{"event", "run-started"},
                 {"name", experiment.name},
                 {"method", recipe.section("method").text("name", methods().front().name)},
                 {"dataset", experiment.train.name},
                 {"partition", describe(experiment.partition_spec)},
                 {"clients", experiment.partition.size()},
                 {"clients_per_round", experiment.clients_per_round},
                 {"rounds", experiment.rounds},
                 {"train_samples", experiment.train.size()},
                 {"test_samples", experiment.evaluation.test.size()}};
  if (experiment.train.dropped_rows > 0) event["dropped_rows"] = experiment.train.dropped_rows;
  return event;
}

State model_state(const Model& model, const Experiment& experiment) {
  State state = model.state();
  state.metadata["bitfed.name"] = experiment.name;
  state.metadata["bitfed.class_names"] = nlohmann::json(experiment.train.class_names).dump();
  if (!experiment.data.empty()) state.metadata["bitfed.data"] = experiment.data;
  return state;
}

uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

// What a client's messages of one round take on a slow radio: LoRaWAN's slowest and fastest.
Event airtime(uint64_t upload_bytes, uint64_t download_bytes) {
  Event rows = Event::array();
  for (const uint64_t rate : {300, 37500}) {
    const auto seconds = [&](uint64_t bytes) {
      return 8.0 * static_cast<double>(bytes) / static_cast<double>(rate);
    };
    rows.push_back({{"bits_per_second", rate},
                    {"upload_seconds", seconds(upload_bytes)},
                    {"download_seconds", seconds(download_bytes)}});
  }
  return rows;
}

constexpr const char* kBinarisedNote =
    "binarized_accuracy is that of the trained network with the signs of its weights and activations, "
    "weights "
    "times the mean magnitude of a filter, statistics of batch norm kept; first inputs and last layer real";

Event number_or_null(const std::optional<uint64_t>& number) {
  return number ? Event(*number) : Event();
}

Event summarise(const Experiment& experiment, const Config& recipe, const ServerHalf& server,
                const Federation& federation, ThreadPool& pool, const std::string& version) {
  const FederationTotals& totals = federation.totals();
  const Event& judged = federation.last_evaluation();
  const std::unique_ptr<Model> model = server.model();
  const ModelCosts costs = model->costs();
  // A round of training; what the preparation took is in the totals alone.
  const uint64_t uploads = totals.uploads - totals.preparation_uploads;
  const uint64_t upload_bytes = (totals.upload_bytes - totals.preparation_upload_bytes) / uploads;
  const uint64_t download_bytes = (totals.download_bytes - totals.preparation_download_bytes) / uploads;
  const std::optional<uint64_t> raw_upload = server.raw_upload_bytes();
  const std::unique_ptr<Model> binarised = model->binarised();
  std::vector<std::string> notes = server.notes();
  if (binarised) notes.emplace_back(kBinarisedNote);
  notes.insert(notes.end(), experiment.data_notes.begin(), experiment.data_notes.end());
  if (totals.reused_uploads > 0) {
    notes.push_back(fmt::format("{} uploads were taken from another run; their training time is that run's",
                                totals.reused_uploads));
  }
  return {{"name", experiment.name},
          {"method", recipe.section("method").text("name", methods().front().name)},
          {"model", recipe.section("model").text("name", "")},
          {"dataset", experiment.train.name},
          {"partition", describe(experiment.partition_spec)},
          {"clients", experiment.partition.size()},
          {"rounds", experiment.rounds},
          {"seed", experiment.seed},
          {"version", version},
          {"threads", pool.size()},
          {"isa", kernels().name},
          {"machine", describe_machine()},
          {"accuracy", judged["accuracy"]},
          {"validation_accuracy", judged["validation_accuracy"]},
          {"binarized_accuracy",
           binarised ? evaluate_model(*binarised, experiment.evaluation, pool)["accuracy"] : Event()},
          {"local_accuracy_mean", judged["local_accuracy_mean"]},
          {"f1_micro", judged["f1_micro"]},
          {"upload_bytes_per_client", upload_bytes},
          {"upload_bytes_raw", number_or_null(raw_upload)},
          {"download_bytes_per_client", download_bytes},
          {"total_upload_bytes", totals.upload_bytes},
          {"airtime", airtime(upload_bytes, download_bytes)},
          {"model_bytes", costs.bytes},
          {"flops", costs.flops},
          {"binary_ops", costs.binary_ops},
          {"model_bytes_paper", number_or_null(costs.paper_bytes)},
          {"flops_paper", number_or_null(costs.paper_flops)},
          {"train_seconds", totals.train_seconds},
          {"train_samples", totals.train_samples},
          {"train_samples_per_second",
           totals.train_seconds > 0 ? static_cast<double>(totals.train_samples) / totals.train_seconds : 0.0},
          {"aggregation_seconds", totals.aggregation_seconds},
          {"evaluation_seconds", totals.evaluation_seconds},
          {"wall_seconds", nullptr},
          {"peak_rss_bytes", peak_rss_bytes()},
          {"model_sha256", model->state().sha256()},
          {"reused_uploads", totals.reused_uploads},
          {"notes", notes},
          {"class_names", experiment.train.class_names},
          {"client_class_counts", class_counts(experiment.train, experiment.partition)},
          {"confusion_matrix", judged["confusion_matrix"]}};
}

}  // namespace

ExperimentResult run_experiment(const Config& recipe, const ExperimentOptions& options,
                                const EventSink& events) {
  const auto start = std::chrono::steady_clock::now();
  events({{"event", "loading"}});
  const Experiment experiment = read_experiment(recipe, options);
  const fs::path out = options.out.empty() ? fs::path("runs") / experiment.name : options.out;
  RunFolderWriter folder(out, experiment.recipe, options.existing);
  const fs::path summary_file = out / "summary.json";
  if (folder.is_finished()) return {out, Event::parse(read_text_file(summary_file))};

  ThreadPool pool(options.threads);
  const EventSink sink = [&](const Event& event) {
    if (event["event"] != "client-progress") folder.log(event);
    events(event);
  };
  sink(started_event(experiment, recipe));
  const std::unique_ptr<ClientHalf> client = experiment.method->make_client();
  const std::unique_ptr<ServerHalf> server = experiment.method->make_server();
  ClientStates states(folder.checkpoint() / "clients", experiment.partition.size());
  const auto transport =
      make_in_process_transport({experiment.seed, experiment.dropout, options.stop}, *client,
                                experiment.train, experiment.partition, states, pool, sink);
  const PersonalEvaluation personal(experiment.train, experiment.partition,
                                    experiment.partition_spec.kind == "column", experiment.evaluation.test);
  FederationOptions federated;
  federated.seed = experiment.seed;
  federated.rounds = experiment.rounds;
  federated.clients = static_cast<uint32_t>(experiment.partition.size());
  federated.clients_per_round = experiment.clients_per_round;
  federated.checkpoint = folder.checkpoint();
  federated.reuse = options.reuse.empty() ? fs::path() : options.reuse / "checkpoint";
  federated.depends_on = experiment.depends_on;
  federated.stop = options.stop;
  Federation federation(
      federated, *server, *transport,
      [&](const Model& model) {
        Event judged = evaluate_model(model, experiment.evaluation, pool);
        judged["local_accuracy_mean"] = personal.mean_accuracy(*client, states, pool);
        return judged;
      },
      sink);
  federation.run();

  write_state(out / "model.safetensors", model_state(*server->model(), experiment));
  Event summary = summarise(experiment, recipe, *server, federation, pool, options.version);
  summary["client_results"] = personal.table(*server->model(), *client, states, pool);
  // Of this process alone: what ran before an interruption is not in it.
  summary["wall_seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  write_file_atomically(summary_file, summary.dump(1) + "\n");
  sink({{"event", "run-finished"},
        {"accuracy", summary["accuracy"]},
        {"model_sha256", summary["model_sha256"]}});
  return {out, summary};
}

}  // namespace bitfed
