#include "bitfed/run/run_folder.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/run/run_summary.h"

namespace bitfed {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& event, const char* name) {
  const auto found = event.find(name);
  if (found == event.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::optional<double> number_of(const Json& event, const char* name) {
  const auto found = event.find(name);
  if (found == event.end() || found->is_null()) return std::nullopt;
  return found->get<double>();
}

// Also of "runs/one/" and ".".
std::string folder_name(const std::filesystem::path& folder) {
  const std::filesystem::path whole = (std::filesystem::absolute(folder) / "").lexically_normal();
  return whole.parent_path().filename().string();
}

// The records of events.jsonl, the later one of those with the same key.
class EventLog {
 public:
  explicit EventLog(std::string source) : source_(std::move(source)) {}

  void read(std::string_view text) {
    size_t line = 1;
    for (size_t begin = 0; begin < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      read_line(text.substr(begin, end - begin), line, end >= text.size());
      begin = end + 1;
    }
  }

  void store(RunFolder& run) {
    for (auto& [key, record] : clients_) run.clients.push_back(std::move(record));
    for (const auto& [round, record] : rounds_) run.rounds.push_back(record);
  }

 private:
  void read_line(std::string_view text, size_t line, bool is_last) {
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const Json event = Json::parse(text, nullptr, false);
    if (!event.is_object()) {
      // The writer ends every line; one without an end is where a crash stopped it.
      if (is_last) return;
      throw input_error("{}: line {}: found text that is not a JSON object, expected an event", source_,
                        line);
    }
    try {
      add(event);
    } catch (const Json::exception&) {
      throw input_error("{}: line {}: found an event with a field of the wrong type, expected numbers",
                        source_, line);
    }
  }

  void add(const Json& event) {
    const std::string kind = text_of(event, "event");
    if (kind == "client-finished") add_client(event);
    if (kind == "round-finished") add_round(event);
  }

  void add_client(const Json& event) {
    ClientRecord record{.round = event.value("round", uint64_t{0}),
                        .client = text_of(event, "client"),
                        .samples = event.value("samples", uint64_t{0}),
                        .upload_bytes = event.value("upload_bytes", uint64_t{0}),
                        .seconds = event.value("seconds", 0.0),
                        .reused = event.value("reused", false)};
    auto key = std::pair(record.round, record.client);
    clients_[std::move(key)] = std::move(record);
  }

  void add_round(const Json& event) {
    const RoundRecord record{.round = event.value("round", uint64_t{0}),
                             .accuracy = number_of(event, "accuracy"),
                             .local_accuracy_mean = number_of(event, "local_accuracy_mean"),
                             .upload_bytes = event.value("upload_bytes", uint64_t{0}),
                             .download_bytes = event.value("download_bytes", uint64_t{0}),
                             .aggregation_seconds = event.value("aggregation_seconds", 0.0),
                             .evaluation_seconds = event.value("evaluation_seconds", 0.0)};
    rounds_[record.round] = record;
  }

  std::string source_;
  std::map<std::pair<uint64_t, std::string>, ClientRecord> clients_;
  std::map<uint64_t, RoundRecord> rounds_;
};

}  // namespace

RunFolder read_run_folder(const std::filesystem::path& folder) {
  const std::filesystem::path summary = folder / "summary.json";
  if (!std::filesystem::exists(summary)) {
    throw input_error("{}: not found, expected the summary that a finished run leaves in its folder",
                      summary.string());
  }
  RunFolder run;
  run.folder = folder;
  run.summary_json = read_text_file(summary);
  run.summary = parse_summary(run.summary_json, summary.string());
  if (run.summary.name.empty()) run.summary.name = folder_name(folder);
  const std::filesystem::path events = folder / "events.jsonl";
  if (std::filesystem::exists(events)) {
    EventLog log(events.string());
    log.read(read_text_file(events));
    log.store(run);
  }
  const std::filesystem::path recipe = folder / "recipe.toml";
  if (std::filesystem::exists(recipe)) run.recipe = read_text_file(recipe);
  return run;
}

}  // namespace bitfed
