#include "bitfed/run/summary.h"

#include "bitfed/base/byte_io.h"
#include "bitfed/run/fields.h"

namespace bitfed {

void Airtime::fields(auto& self, auto& field) {
  field("bits_per_second", self.bits_per_second);
  field("upload_seconds", self.upload_seconds);
  field("download_seconds", self.download_seconds);
}

void ClientAccuracy::fields(auto& self, auto& field) {
  field("client", self.client);
  field("name", self.name);
  field("samples", self.samples);
  field("test_samples", self.test_samples);
  field("global_accuracy", self.global_accuracy);
  field("local_accuracy", self.local_accuracy);
}

void RunSummary::fields(auto& self, auto& field) {
  field("name", self.name);
  field("method", self.method);
  field("model", self.model);
  field("dataset", self.dataset);
  field("partition", self.partition);
  field("clients", self.clients);
  field("rounds", self.rounds);
  field("seed", self.seed);
  field("version", self.version);
  field("threads", self.threads);
  field.if_set("ranks", self.ranks);
  field.if_set("hosts", self.hosts);
  field("isa", self.isa);
  field("device", self.device);
  field("machine", self.machine);
  field("accuracy", self.accuracy);
  field("validation_accuracy", self.validation_accuracy);
  field("binarized_accuracy", self.binarized_accuracy);
  field("local_accuracy_mean", self.local_accuracy_mean);
  field("f1_micro", self.f1_micro);
  field("f1_macro", self.f1_macro);
  field("balanced_accuracy", self.balanced_accuracy);
  field.if_set("epsilon", self.epsilon);
  field.if_set("delta", self.delta);
  field.if_set("noise_multiplier", self.noise_multiplier);
  field.if_set("private_rounds", self.private_rounds);
  field("upload_bytes_per_client", self.upload_bytes_per_client);
  field("upload_bytes_raw", self.upload_bytes_raw);
  field("download_bytes_per_client", self.download_bytes_per_client);
  field("total_upload_bytes", self.total_upload_bytes);
  field.if_set("exchanges", self.exchanges);
  field.if_set("preparation_upload_bytes_per_client", self.preparation_upload_bytes_per_client);
  field("airtime", self.airtime);
  field("model_bytes", self.model_bytes);
  field("flops", self.flops);
  field("binary_ops", self.binary_ops);
  field("model_bytes_paper", self.model_bytes_paper);
  field("flops_paper", self.flops_paper);
  field("train_seconds", self.train_seconds);
  field("train_samples", self.train_samples);
  field("train_samples_per_second", self.train_samples_per_second);
  field("aggregation_seconds", self.aggregation_seconds);
  field("evaluation_seconds", self.evaluation_seconds);
  field("wall_seconds", self.wall_seconds);
  field("peak_rss_bytes", self.peak_rss_bytes);
  field("model_sha256", self.model_sha256);
  field("model_round", self.model_round);
  field("reused_uploads", self.reused_uploads);
  field("notes", self.notes);
  field("class_names", self.class_names);
  field("client_class_counts", self.client_class_counts);
  field("confusion_matrix", self.confusion_matrix);
  field("client_results", self.client_results);
}

namespace {

template <typename T>
void check_rows(const std::vector<std::vector<T>>& table, const std::string& where) {
  for (const std::vector<T>& row : table) {
    if (row.size() == table.front().size()) continue;
    throw input_error("{}: found rows of {} and of {} counts, expected equal ones", where,
                      table.front().size(), row.size());
  }
}

}  // namespace

std::string summary_text(const RunSummary& summary) {
  return write_fields(summary).dump(1) + "\n";
}

RunSummary parse_summary(std::string_view text, const std::string& source) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    throw input_error("{}: found text that is not JSON, expected a run's summary", source);
  RunSummary summary = read_fields<RunSummary>(json, source);
  check_rows(summary.client_class_counts, source + ": client_class_counts");
  check_rows(summary.confusion_matrix, source + ": confusion_matrix");
  const auto& matrix = summary.confusion_matrix;
  if (!matrix.empty() && matrix.size() != matrix.front().size()) {
    throw input_error("{}: confusion_matrix: found {} rows of {}, expected as many rows as columns", source,
                      matrix.size(), matrix.front().size());
  }
  return summary;
}

void write_summary(const std::filesystem::path& folder, const RunSummary& summary) {
  write_file_atomically(folder / "summary.json", summary_text(summary));
}

RunSummary read_summary(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "summary.json";
  if (!std::filesystem::exists(file)) {
    throw input_error("{}: not found, expected the summary that a finished run leaves in its folder",
                      file.string());
  }
  return parse_summary(read_text_file(file), file.string());
}

}  // namespace bitfed
