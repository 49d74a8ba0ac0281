#include "bitfed/run/run_summary.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

using Json = nlohmann::json;

class Reader {
 public:
  Reader(const Json& json, std::string source) : json_(json), source_(std::move(source)) {}

  void read(const char* name, std::string& target) const {
    if (const Json* value = find(name)) target = text(*value, name);
  }

  void read(const char* name, std::optional<double>& target) const {
    const Json* value = find(name);
    if (value == nullptr) return;
    if (!value->is_number()) throw mismatch(name, *value, "a number");
    target = value->get<double>();
  }

  void read(const char* name, std::optional<uint64_t>& target) const {
    if (const Json* value = find(name)) target = count<uint64_t>(*value, name);
  }

  void read(const char* name, std::vector<std::string>& target) const {
    for (const Json& value : array(name)) target.push_back(text(value, name));
  }

  // A table of counts whose rows are equally long.
  template <typename T>
  void read(const char* name, std::vector<std::vector<T>>& target) const {
    for (const Json& row : array(name)) {
      if (!row.is_array()) throw mismatch(name, row, "an array of arrays of counts");
      std::vector<T>& counts = target.emplace_back();
      for (const Json& value : row) counts.push_back(count<T>(value, name));
      if (counts.size() == target.front().size()) continue;
      throw input_error("{}: {}: found rows of {} and of {} counts, expected equal ones", source_, name,
                        target.front().size(), counts.size());
    }
  }

  // A field that must be there.
  template <typename T>
  void require(const char* name, T& target) const {
    std::optional<T> value;
    read(name, value);
    if (!value) throw input_error("{}: {}: found nothing, expected a number", source_, name);
    target = *value;
  }

  // An array of objects: calls `each` with a reader of every one.
  template <typename Each>
  void for_objects(const char* name, Each each) const {
    size_t index = 0;
    for (const Json& row : array(name)) {
      if (!row.is_object()) throw mismatch(name, row, "an array of objects");
      each(Reader(row, fmt::format("{}: {}[{}]", source_, name, index++)));
    }
  }

 private:
  const Json* find(const char* name) const {
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  const Json& array(const char* name) const {
    static const Json kNone = Json::array();
    const Json* value = find(name);
    if (value != nullptr && !value->is_array()) throw mismatch(name, *value, "an array");
    return value == nullptr ? kNone : *value;
  }

  std::string text(const Json& value, const char* name) const {
    if (!value.is_string()) throw mismatch(name, value, "a string");
    return value.get<std::string>();
  }

  template <typename T>
  T count(const Json& value, const char* name) const {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<T>::max()) {
      throw mismatch(name, value, "a count");
    }
    return value.get<T>();
  }

  Error mismatch(const char* name, const Json& value, std::string_view expected) const {
    const std::string found = value.is_number() ? value.dump() : value.type_name();
    return input_error("{}: {}: found {}, expected {}", source_, name, found, expected);
  }

  const Json& json_;
  std::string source_;
};

void read_texts(const Reader& reader, RunSummary& summary) {
  reader.read("name", summary.name);
  reader.read("method", summary.method);
  reader.read("method_description", summary.method_description);
  reader.read("model", summary.model);
  reader.read("dataset", summary.dataset);
  reader.read("partition", summary.partition);
  reader.read("version", summary.version);
  reader.read("isa", summary.isa);
  reader.read("model_sha256", summary.model_sha256);
  reader.read("class_names", summary.class_names);
  reader.read("notes", summary.notes);
}

void read_counts(const Reader& reader, RunSummary& summary) {
  reader.read("clients", summary.clients);
  reader.read("rounds", summary.rounds);
  reader.read("seed", summary.seed);
  reader.read("threads", summary.threads);
  reader.read("upload_bytes_per_client", summary.upload_bytes_per_client);
  reader.read("upload_bytes_raw", summary.upload_bytes_raw);
  reader.read("download_bytes_per_client", summary.download_bytes_per_client);
  reader.read("total_upload_bytes", summary.total_upload_bytes);
  reader.read("model_bytes", summary.model_bytes);
  reader.read("flops", summary.flops);
  reader.read("binary_ops", summary.binary_ops);
  reader.read("model_bytes_paper", summary.model_bytes_paper);
  reader.read("flops_paper", summary.flops_paper);
  reader.read("train_samples", summary.train_samples);
  reader.read("peak_rss_bytes", summary.peak_rss_bytes);
  reader.read("confusion_matrix", summary.confusion_matrix);
  reader.read("client_class_counts", summary.client_class_counts);
}

void read_numbers(const Reader& reader, RunSummary& summary) {
  reader.read("accuracy", summary.accuracy);
  reader.read("validation_accuracy", summary.validation_accuracy);
  reader.read("binarized_accuracy", summary.binarized_accuracy);
  reader.read("local_accuracy_mean", summary.local_accuracy_mean);
  reader.read("f1_micro", summary.f1_micro);
  reader.read("train_seconds", summary.train_seconds);
  reader.read("train_samples_per_second", summary.train_samples_per_second);
  reader.read("aggregation_seconds", summary.aggregation_seconds);
  reader.read("evaluation_seconds", summary.evaluation_seconds);
  reader.read("wall_seconds", summary.wall_seconds);
}

ClientOutcome read_outcome(const Reader& reader) {
  ClientOutcome outcome;
  reader.require("client", outcome.client);
  reader.read("name", outcome.name);
  reader.require("samples", outcome.samples);
  reader.require("test_samples", outcome.test_samples);
  reader.read("global_accuracy", outcome.global_accuracy);
  reader.read("local_accuracy", outcome.local_accuracy);
  return outcome;
}

Airtime read_airtime(const Reader& reader) {
  Airtime airtime;
  reader.require("bits_per_second", airtime.bits_per_second);
  reader.require("upload_seconds", airtime.upload_seconds);
  reader.require("download_seconds", airtime.download_seconds);
  return airtime;
}

void read_lists(const Reader& reader, RunSummary& summary) {
  reader.for_objects("client_results",
                     [&](const Reader& row) { summary.client_results.push_back(read_outcome(row)); });
  reader.for_objects("airtime", [&](const Reader& row) { summary.airtime.push_back(read_airtime(row)); });
}

}  // namespace

RunSummary parse_summary(std::string_view text, const std::string& source) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded())
    throw input_error("{}: found text that is not JSON, expected a run's summary", source);
  if (!json.is_object()) {
    throw input_error("{}: found {}, expected a JSON object: a run's summary", source, json.type_name());
  }
  RunSummary summary;
  const Reader reader(json, source);
  read_texts(reader, summary);
  read_counts(reader, summary);
  read_numbers(reader, summary);
  read_lists(reader, summary);
  const auto& matrix = summary.confusion_matrix;
  if (!matrix.empty() && matrix.size() != matrix.front().size()) {
    throw input_error("{}: confusion_matrix: found {} rows of {}, expected as many rows as columns", source,
                      matrix.size(), matrix.front().size());
  }
  return summary;
}

}  // namespace bitfed
