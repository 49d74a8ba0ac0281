#include "bitfed/run/run_folder.h"

#include <algorithm>
#include <map>
#include <utility>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"

namespace bitfed {
namespace {

// The last part of the path, also for "runs/one/" and ".".
std::string folder_name(const std::filesystem::path& folder) {
  const std::filesystem::path whole = (std::filesystem::absolute(folder) / "").lexically_normal();
  return whole.parent_path().filename().string();
}

// Collects the clients and rounds of events.jsonl; of several records of the same one, the last.
class EventLog {
 public:
  explicit EventLog(std::string source) : source_(std::move(source)) {}

  void read(std::string_view text) {
    size_t line = 1;
    for (size_t begin = 0; begin < text.size(); ++line) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      // The writer ends every line; one without an end is where a crash stopped it.
      if (end < text.size()) read_line(text.substr(begin, end - begin), line);
      begin = end + 1;
    }
  }

  void store(RunFolder& run) const {
    for (const auto& [key, record] : clients_) run.clients.push_back(record);
    for (const auto& [round, record] : rounds_) run.rounds.push_back(record);
  }

 private:
  void read_line(std::string_view text, size_t line) {
    if (text.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const auto event = parse_event(text, fmt::format("{}: line {}", source_, line));
    if (!event) return;
    if (const auto* client = std::get_if<ClientFinished>(&*event)) add(*client);
    if (const auto* round = std::get_if<RoundFinished>(&*event)) rounds_[round->round] = *round;
  }

  void add(ClientFinished client) {
    const auto [place, is_new] = clients_.try_emplace({client.round, client.client}, client);
    // A resumed run logs the uploads of its checkpoint a second time; their first record has their origin.
    if (!is_new && client.origin == Origin::kCheckpoint) client.origin = place->second.origin;
    place->second = client;
  }

  std::string source_;
  std::map<std::pair<uint32_t, uint32_t>, ClientFinished> clients_;  // by round and client
  std::map<uint32_t, RoundFinished> rounds_;
};

}  // namespace

RunFolder read_run_folder(const std::filesystem::path& folder) {
  RunFolder run;
  run.folder = folder;
  run.summary = read_summary(folder);
  run.summary_text = read_text_file(folder / "summary.json");
  if (run.summary.name.empty()) run.summary.name = folder_name(folder);
  const std::filesystem::path events = folder / "events.jsonl";
  if (std::filesystem::exists(events)) {
    EventLog log(events.string());
    log.read(read_text_file(events));
    log.store(run);
  }
  const std::filesystem::path recipe = folder / "recipe.toml";
  if (std::filesystem::exists(recipe)) run.recipe = read_text_file(recipe);
  const std::filesystem::path samples = folder / "samples.png";
  if (std::filesystem::exists(samples)) run.samples = read_file(samples);
  return run;
}

}  // namespace bitfed
