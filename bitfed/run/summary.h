#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitfed {

// What one client's messages of one round take on a radio of that rate.
struct Airtime {
  uint64_t bits_per_second = 0;
  double upload_seconds = 0;
  double download_seconds = 0;

  static void fields(auto& self, auto& field);
  bool operator==(const Airtime&) const = default;
};

// The accuracy of the federation's model and of the client's own model on one client's test samples.
struct ClientAccuracy {
  uint64_t client = 0;
  std::optional<std::string> name = {};  // of the person; empty: clients are not persons
  uint64_t samples = 0;
  uint64_t test_samples = 0;
  std::optional<double> global_accuracy = {};  // empty: no test samples
  std::optional<double> local_accuracy = {};   // empty: no test samples, or no model of its own

  static void fields(auto& self, auto& field);
  bool operator==(const ClientAccuracy&) const = default;
};

// summary.json: a finished run. Fields carry the names that they have in the file, see
// docs/reference/run-folder.md; what the file of an earlier version lacks, or gives as null, is empty.
struct RunSummary {
  std::string name;
  std::string method;
  std::string model;
  std::string dataset;
  std::string partition;
  std::optional<uint64_t> clients, rounds, seed;
  std::string version;
  std::optional<uint64_t> threads;
  // Of a run over several processes: their number, and the hosts that they ran on, each once.
  std::optional<uint64_t> ranks;
  std::optional<std::vector<std::string>> hosts;
  std::string isa;
  std::optional<std::string> device;  // that networks were trained on, or several; empty: the CPU
  std::string machine;
  std::optional<double> accuracy, validation_accuracy;
  std::optional<double> binarized_accuracy;  // of a real-valued network, made binary after training
  std::optional<double> local_accuracy_mean, f1_micro;
  std::optional<double> f1_macro;           // mean F1 of the classes that occur or were predicted
  std::optional<double> balanced_accuracy;  // mean recall of the classes that have test samples
  // Of differential privacy: what the rounds spent, and their number.
  std::optional<double> epsilon, delta, noise_multiplier;
  std::optional<uint64_t> private_rounds;
  std::optional<uint64_t> upload_bytes_per_client, upload_bytes_raw, download_bytes_per_client,
      total_upload_bytes;
  // Of a one-shot method: the number of exchanges that the bytes per client cover. Empty: they are per round,
  // and those of the preparation before the first round, if there was one, are given beside.
  std::optional<uint64_t> exchanges, preparation_upload_bytes_per_client;
  std::vector<Airtime> airtime;
  std::optional<uint64_t> model_bytes, flops, binary_ops;
  std::optional<uint64_t> model_bytes_paper, flops_paper;  // as the FedBNN paper counts
  std::optional<double> train_seconds;
  std::optional<uint64_t> train_samples;
  std::optional<double> train_samples_per_second;
  std::optional<double> aggregation_seconds, evaluation_seconds, wall_seconds;
  std::optional<uint64_t> peak_rss_bytes;
  std::string model_sha256;
  std::optional<uint64_t> model_round;  // the round after which the run's model was taken
  std::optional<uint64_t> reused_uploads;
  std::vector<std::string> notes;  // where the run differs from its paper; what it reused
  std::vector<std::string> class_names;
  std::vector<std::vector<uint32_t>> client_class_counts;  // a row per client
  std::vector<std::vector<uint64_t>> confusion_matrix;     // [true][predicted]
  std::vector<ClientAccuracy> client_results;              // none where clients keep no models

  static void fields(auto& self, auto& field);
  bool operator==(const RunSummary&) const = default;
};

// The text of summary.json.
std::string summary_text(const RunSummary& summary);

// Reads that text; `source` is the file's name for errors.
RunSummary parse_summary(std::string_view text, const std::string& source);

// summary.json in a run's folder. It is written last: a run that has one is finished.
void write_summary(const std::filesystem::path& folder, const RunSummary& summary);
RunSummary read_summary(const std::filesystem::path& folder);

}  // namespace bitfed
