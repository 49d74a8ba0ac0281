#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {

// How a client fared with the federation's model and with the one that it keeps for itself.
struct ClientOutcome {
  uint64_t client = 0;
  std::string name = {};  // of the person; empty: clients are no persons
  uint64_t samples = 0;
  uint64_t test_samples = 0;
  std::optional<double> global_accuracy = {};
  std::optional<double> local_accuracy = {};
};

// What a client's messages of one round take on a radio of that rate.
struct Airtime {
  uint64_t bits_per_second = 0;
  double upload_seconds = 0;
  double download_seconds = 0;
};

// What summary.json says; what it leaves out, or gives as null, is empty here. The fields carry its names.
struct RunSummary {
  std::string name;
  std::string method;
  std::string method_description;
  std::string model;
  std::string dataset;
  std::string partition;
  std::string version;
  std::string isa;
  std::string model_sha256;
  std::optional<uint64_t> clients, rounds, seed, threads;
  std::optional<double> accuracy, validation_accuracy, local_accuracy_mean, f1_micro;
  std::optional<double> binarized_accuracy;  // of a real network, made binary after training
  std::optional<uint64_t> upload_bytes_per_client, upload_bytes_raw, download_bytes_per_client,
      total_upload_bytes;
  std::optional<uint64_t> model_bytes, flops, binary_ops, train_samples, peak_rss_bytes;
  std::optional<uint64_t> model_bytes_paper, flops_paper;  // as the FedBNN paper counts
  std::optional<double> train_seconds, train_samples_per_second;
  std::optional<double> aggregation_seconds, evaluation_seconds, wall_seconds;
  std::vector<std::string> class_names;
  std::vector<std::vector<uint64_t>> confusion_matrix;     // rows: the true class
  std::vector<std::vector<uint32_t>> client_class_counts;  // a row a client
  std::vector<ClientOutcome> client_results;               // none where clients keep no models
  std::vector<Airtime> airtime;
  std::vector<std::string> notes;  // where the run differs from its paper; what it reused
};

struct ClientRecord {
  uint64_t round = 0;
  std::string client;  // a number in a simulation, a name in a federation
  uint64_t samples = 0;
  uint64_t upload_bytes = 0;
  double seconds = 0;
  bool reused = false;
};

struct RoundRecord {
  uint64_t round = 0;
  std::optional<double> accuracy = {};
  std::optional<double> local_accuracy_mean = {};  // of the models that clients keep for themselves
  uint64_t upload_bytes = 0;
  uint64_t download_bytes = 0;
  double aggregation_seconds = 0;
  double evaluation_seconds = 0;
};

// A run's folder, as `bitfed run` leaves it.
struct RunFolder {
  std::filesystem::path folder;
  RunSummary summary;
  std::string summary_json;             // as found
  std::string recipe;                   // recipe.toml as found; empty: none
  std::vector<ClientRecord> clients;    // by round
  std::vector<RoundRecord> rounds;      // ascending
  std::vector<TsetlinMember> machines;  // of the model, where it is a Tsetlin one and was loaded
};

// Everything but the model. summary.json must be there; the other files may be missing. Where a resumed
// run did a round twice, the later records count; a last line of events.jsonl that a crash cut short is
// passed over. Anything else that is malformed is an input_error that names the file, line or field.
RunFolder read_run_folder(const std::filesystem::path& folder);

// The same, and model.safetensors if it is there.
RunFolder read_run_with_model(const std::filesystem::path& folder);

}  // namespace bitfed
