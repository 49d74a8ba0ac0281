#include "bitfed/federated/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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

// LoRaWAN's slowest and fastest rate.
std::vector<Airtime> airtime(uint64_t upload_bytes, uint64_t download_bytes) {
  std::vector<Airtime> rows;
  for (const uint64_t rate : {300, 37500}) {
    const auto seconds = [&](uint64_t bytes) {
      return 8.0 * static_cast<double>(bytes) / static_cast<double>(rate);
    };
    rows.push_back({rate, seconds(upload_bytes), seconds(download_bytes)});
  }
  return rows;
}

constexpr const char* kBinarisedNote =
    "binarized_accuracy is that of the trained network with the signs of its weights and activations, "
    "weights times the mean magnitude of a filter, statistics of batch norm kept; first inputs and last "
    "layer "
    "real";

std::vector<std::string> notes_of(const Experiment& experiment, const ServerHalf& server, bool is_binarised,
                                  uint64_t reused_uploads) {
  std::vector<std::string> notes = server.notes();
  if (is_binarised) notes.emplace_back(kBinarisedNote);
  notes.insert(notes.end(), experiment.data_notes.begin(), experiment.data_notes.end());
  if (reused_uploads > 0) {
    notes.push_back(fmt::format("{} uploads were taken from another run; their training time is that run's",
                                reused_uploads));
  }
  return notes;
}

// "NVIDIA H200 …; CPU" of a run that was resumed on a CPU.
std::optional<std::string> device_text(std::vector<std::string> devices) {
  if (devices == std::vector<std::string>{""}) return std::nullopt;
  for (std::string& device : devices) {
    if (device.empty()) device = "CPU";
  }
  return fmt::format("{}", fmt::join(devices, "; "));
}

void add_scores(const Evaluation& evaluation, RunSummary* summary) {
  summary->accuracy = evaluation.scores.accuracy;
  summary->validation_accuracy = evaluation.scores.validation_accuracy;
  summary->local_accuracy_mean = evaluation.scores.local_accuracy_mean;
  summary->f1_micro = evaluation.scores.f1_micro;
  summary->confusion_matrix = evaluation.confusion_matrix;
  summary->f1_macro = macro_f1(evaluation.confusion_matrix);
  summary->balanced_accuracy = balanced_accuracy(evaluation.confusion_matrix);
}

// Of a one-shot method all that a client sends and receives, in the preparation and in every exchange; of
// others what it sends and receives in a round of training.
void add_totals(const FederationTotals& totals, const Experiment& experiment, RunSummary* summary) {
  const bool one_shot = experiment.method->max_rounds() != UINT32_MAX;
  const uint64_t uploads = totals.uploads - totals.preparation_uploads;
  const auto per_client = [&](uint64_t bytes, uint64_t of_preparation) {
    return one_shot ? bytes * experiment.rounds / uploads : (bytes - of_preparation) / uploads;
  };
  const uint64_t upload_bytes = per_client(totals.upload_bytes, totals.preparation_upload_bytes);
  const uint64_t download_bytes = per_client(totals.download_bytes, totals.preparation_download_bytes);
  const bool prepared = totals.preparation_uploads > 0;
  if (one_shot) {
    summary->exchanges = experiment.rounds + (prepared ? 1 : 0);
  } else if (prepared) {
    summary->preparation_upload_bytes_per_client =
        totals.preparation_upload_bytes / totals.preparation_uploads;
  }
  summary->upload_bytes_per_client = upload_bytes;
  summary->download_bytes_per_client = download_bytes;
  summary->total_upload_bytes = totals.upload_bytes;
  summary->airtime = airtime(upload_bytes, download_bytes);
  summary->train_seconds = totals.train_seconds;
  summary->train_samples = totals.train_samples;
  summary->train_samples_per_second =
      totals.train_seconds > 0 ? static_cast<double>(totals.train_samples) / totals.train_seconds : 0.0;
  summary->aggregation_seconds = totals.aggregation_seconds;
  summary->evaluation_seconds = totals.evaluation_seconds;
  summary->reused_uploads = totals.reused_uploads;
}

void add_privacy(const DifferentialPrivacy& privacy, uint64_t rounds, RunSummary* summary) {
  summary->epsilon = epsilon_of(privacy.release, rounds, privacy.delta);
  summary->delta = privacy.delta;
  summary->noise_multiplier = privacy.release.noise_multiplier;
  summary->private_rounds = rounds;
}

void add_costs(const ModelCosts& costs, RunSummary* summary) {
  summary->model_bytes = costs.bytes;
  summary->flops = costs.flops;
  summary->binary_ops = costs.binary_ops;
  summary->model_bytes_paper = costs.paper_bytes;
  summary->flops_paper = costs.paper_flops;
}

}  // namespace

RunSummary summarise(const Experiment& experiment, const ServerHalf& server, const Federation& federation,
                     ThreadPool& pool) {
  const Model& model = federation.model();
  RunSummary summary;
  summary.name = experiment.name;
  summary.method = experiment.method_name;
  summary.model = experiment.model_name;
  summary.dataset = experiment.train.name;
  summary.partition = partition_text(experiment);
  summary.clients = experiment.clients;
  summary.rounds = experiment.rounds;
  summary.seed = experiment.seed;
  summary.threads = pool.size();
  summary.isa = kernels().name;
  summary.device = device_text(federation.devices());
  summary.machine = describe_machine();
  add_scores(federation.evaluation(), &summary);
  const std::unique_ptr<Model> binarised = model.binarised();
  if (binarised)
    summary.binarized_accuracy = evaluate_model(*binarised, experiment.evaluation, pool).scores.accuracy;
  if (experiment.differential_privacy)
    add_privacy(*experiment.differential_privacy, federation.private_rounds(), &summary);
  add_totals(federation.totals(), experiment, &summary);
  summary.upload_bytes_raw = server.raw_upload_bytes();
  add_costs(model.costs(), &summary);
  summary.peak_rss_bytes = peak_rss_bytes();
  summary.model_sha256 = model.state().sha256();
  summary.model_round = federation.model_round();
  summary.notes = notes_of(experiment, server, binarised != nullptr, federation.totals().reused_uploads);
  summary.class_names = experiment.train.class_names;
  summary.client_class_counts = class_counts(experiment.train, experiment.partition);
  return summary;
}

}  // namespace bitfed
