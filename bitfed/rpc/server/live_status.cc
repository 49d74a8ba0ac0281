#include "bitfed/rpc/server/live_status.h"

#include <fmt/format.h>

#include <fstream>

namespace bitfed {
namespace {

constexpr size_t kMostRounds = 2000;  // of the curve that is shown; older ones are thinned out
constexpr size_t kMostFaults = 50;

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t size = 0;
  uint64_t resident = 0;
  file >> size >> resident;
  return resident * 4096;
}

// Every second one of the older half.
void thin_out(Event* curve) {
  Event kept = Event::array();
  for (size_t i = 0; i < curve->size(); ++i) {
    if (i >= curve->size() / 2 || i % 2 == 0) kept.push_back((*curve)[i]);
  }
  *curve = std::move(kept);
}

}  // namespace

void LiveStatus::hear(const Event& event) {
  const std::lock_guard lock(mutex_);
  const std::string kind = event["event"];
  if (kind == "run-started") {
    for (const char* key :
         {"name", "method", "dataset", "federation", "rounds", "clients", "clients_per_round"})
      about_[key] = event.value(key, Event());
  } else if (kind == "waiting-for-clients") {
    phase_ = "waiting for clients";
  } else if (kind == "round-started") {
    phase_ = "training";
    round_begin_ = std::chrono::steady_clock::now();
  } else if (kind == "round-finished") {
    phase_ = "between rounds";
    upload_bytes_ += event["upload_bytes"].get<uint64_t>();
    download_bytes_ += event["download_bytes"].get<uint64_t>();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - round_begin_;
    curve_.push_back({{"round", event["round"]},
                      {"seconds", taken.count()},
                      {"uploads", event["uploads"]},
                      {"upload_bytes", event["upload_bytes"]},
                      {"accuracy", event.value("accuracy", Event())}});
    if (curve_.size() > kMostRounds) thin_out(&curve_);
  } else if (kind == "client-fault") {
    faults_.push_back(event);
    if (faults_.size() > kMostFaults) faults_.pop_front();
  } else if (kind == "client-lost") {
    ++lost_;
  } else if (kind == "run-finished") {
    phase_ = "finished";
  }
}

Event LiveStatus::snapshot(const CoordinatorStatus& now) const {
  const std::lock_guard lock(mutex_);
  Event result = about_;
  result["phase"] = phase_;
  result["round"] = curve_.empty() ? Event(0) : curve_.back()["round"];
  if (now.round >= 0) result["round"] = now.round;
  result["waiting_for"] = now.wanted;
  result["connections"] = now.connections;
  result["upload_bytes"] = upload_bytes_;
  result["download_bytes"] = download_bytes_;
  result["answers_missed"] = lost_;
  result["counts"] = now.counts;
  result["resident_bytes"] = resident_bytes();
  Event clients = Event::array();
  for (const CoordinatorStatus::Client& client : now.clients) {
    clients.push_back({{"client", client.number},
                       {"name", client.name},
                       {"state", client.ready       ? "ready"
                                 : client.connected ? "preparing"
                                                    : "away"},
                       {"samples", client.ready ? Event(client.samples) : Event()},
                       {"last_round", client.last_round >= 0 ? Event(client.last_round) : Event()},
                       {"peer", client.peer}});
  }
  result["clients_known"] = clients;
  result["curve"] = curve_;
  result["faults"] = faults_;
  return result;
}

std::string prometheus_text(const Event& snapshot) {
  std::string text;
  const auto metric = [&](const char* name, const char* kind, const char* help, const Event& value) {
    if (!value.is_number()) return;
    text += fmt::format("# HELP bitfed_{0} {1}\n# TYPE bitfed_{0} {2}\nbitfed_{0} {3}\n", name, help, kind,
                        value.dump());
  };
  const auto count = [&](const char* state) {
    size_t found = 0;
    for (const Event& client : snapshot["clients_known"]) found += client["state"] == state ? 1 : 0;
    return found;
  };
  metric("round", "gauge", "The round under way, or the last one", snapshot["round"]);
  metric("rounds", "gauge", "Rounds of the federation", snapshot.value("rounds", Event()));
  metric("clients_known", "gauge", "Clients that have ever come", snapshot["clients_known"].size());
  metric("clients_ready", "gauge", "Clients that can be given work", count("ready"));
  metric("clients_awaited", "gauge", "Clients that the round waits for", snapshot["waiting_for"]);
  metric("connections", "gauge", "Open connections", snapshot["connections"]);
  metric("upload_bytes_total", "counter", "Bytes of updates, since this process began",
         snapshot["upload_bytes"]);
  metric("download_bytes_total", "counter", "Bytes of broadcasts, since this process began",
         snapshot["download_bytes"]);
  metric("answers_missed_total", "counter", "Chosen clients that a round ended without",
         snapshot["answers_missed"]);
  metric("resident_bytes", "gauge", "Memory of the server", snapshot["resident_bytes"]);
  if (!snapshot["curve"].empty()) {
    metric("accuracy", "gauge", "Of the model after the last round, a fraction",
           snapshot["curve"].back()["accuracy"]);
    metric("round_seconds", "gauge", "That the last round took", snapshot["curve"].back()["seconds"]);
  }
  text +=
      "# HELP bitfed_events_total Updates accepted, and faults by their kind\n# TYPE bitfed_events_total "
      "counter\n";
  for (const auto& [kind, number] : snapshot["counts"].items())
    text += fmt::format("bitfed_events_total{{kind=\"{}\"}} {}\n", kind, number.dump());
  return text;
}

}  // namespace bitfed
