#include "bitfed/federated/summary.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "bitfed/base/machine.h"
#include "bitfed/bits/kernels.h"

namespace bitfed {
namespace {

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

}  // namespace

State model_state(const Model& model, const Experiment& experiment) {
  State state = model.state();
  state.metadata["bitfed.name"] = experiment.name;
  state.metadata["bitfed.class_names"] = nlohmann::json(experiment.train.class_names).dump();
  if (!experiment.data.empty()) state.metadata["bitfed.data"] = experiment.data;
  return state;
}

Event summarise(const Experiment& experiment, const Config& recipe, const ServerHalf& server,
                const Federation& federation, ThreadPool& pool, const std::string& version) {
  const FederationTotals& totals = federation.totals();
  const Event& judged = federation.evaluation();
  const Model& model = federation.model();
  const ModelCosts costs = model.costs();
  // A round of training; what the preparation took is in the totals alone.
  const uint64_t uploads = totals.uploads - totals.preparation_uploads;
  const uint64_t upload_bytes = (totals.upload_bytes - totals.preparation_upload_bytes) / uploads;
  const uint64_t download_bytes = (totals.download_bytes - totals.preparation_download_bytes) / uploads;
  const std::optional<uint64_t> raw_upload = server.raw_upload_bytes();
  const std::unique_ptr<Model> binarised = model.binarised();
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
          {"partition", partition_text(experiment)},
          {"clients", experiment.clients},
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
          {"model_sha256", model.state().sha256()},
          {"model_round", federation.model_round()},
          {"reused_uploads", totals.reused_uploads},
          {"notes", notes},
          {"class_names", experiment.train.class_names},
          {"client_class_counts", class_counts(experiment.train, experiment.partition)},
          {"confusion_matrix", judged["confusion_matrix"]}};
}

}  // namespace bitfed
