#include "bitfed/rpc/server/live_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace bitfed {
namespace {

constexpr size_t kMaxRounds = 2000;  // of the curve; beyond that older ones are thinned out
constexpr size_t kMaxFaults = 50;

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t size = 0;
  uint64_t resident = 0;
  file >> size >> resident;
  return resident * 4096;
}

// Drops every second one of the older half.
void thin_out(std::vector<FederationStatus::Round>* curve) {
  std::vector<FederationStatus::Round> kept;
  for (size_t i = 0; i < curve->size(); ++i) {
    if (i >= curve->size() / 2 || i % 2 == 0) kept.push_back((*curve)[i]);
  }
  *curve = std::move(kept);
}

FederationStatus::Client client_of(const CoordinatorStatus::Client& client) {
  FederationStatus::Client result;
  result.client = client.number;
  result.name = client.name;
  result.state = client.ready ? "ready" : client.connected ? "preparing" : "away";
  if (client.ready) result.samples = client.samples;
  if (client.last_round >= 0) result.last_round = static_cast<uint64_t>(client.last_round);
  result.peer = client.peer;
  return result;
}

}  // namespace

void LiveStatus::receive(const Event& event) {
  const std::lock_guard lock(mutex_);
  std::visit([&](const auto& kind) { on(kind); }, event);
}

void LiveStatus::on(const RunStarted& event) {
  status_.about = {.name = event.name,
                   .method = event.method,
                   .dataset = event.dataset,
                   .federation = event.federation.value_or(""),
                   .rounds = event.rounds,
                   .clients = event.clients,
                   .clients_per_round = event.clients_per_round};
}

void LiveStatus::on(const WaitingForClients& /*event*/) {
  status_.phase = "waiting for clients";
}

void LiveStatus::on(const RoundStarted& /*event*/) {
  status_.phase = "training";
  round_ = Stopwatch();
}

void LiveStatus::on(const RoundFinished& event) {
  status_.phase = "between rounds";
  status_.round = event.round;
  status_.upload_bytes += event.upload_bytes;
  status_.download_bytes += event.download_bytes;
  status_.curve.push_back({.round = event.round,
                           .seconds = round_.seconds(),
                           .uploads = event.uploads,
                           .upload_bytes = event.upload_bytes,
                           .accuracy = event.scores ? std::optional(event.scores->accuracy) : std::nullopt});
  if (status_.curve.size() > kMaxRounds) thin_out(&status_.curve);
}

void LiveStatus::on(const ClientFault& event) {
  faults_.push_back(event);
  if (faults_.size() > kMaxFaults) faults_.pop_front();
}

void LiveStatus::on(const ClientLost& /*event*/) {
  ++status_.answers_missed;
}

void LiveStatus::on(const RunFinished& /*event*/) {
  status_.phase = "finished";
}

FederationStatus LiveStatus::snapshot(const CoordinatorStatus& now) const {
  const std::lock_guard lock(mutex_);
  FederationStatus result = status_;
  if (now.round >= 0) result.round = static_cast<uint64_t>(now.round);
  result.waiting_for = now.wanted;
  result.connections = now.connections;
  result.counts = now.counts;
  result.resident_bytes = resident_bytes();
  for (const CoordinatorStatus::Client& client : now.clients)
    result.clients_known.push_back(client_of(client));
  result.faults.assign(faults_.begin(), faults_.end());
  return result;
}

std::string prometheus_text(const FederationStatus& status) {
  std::string text;
  const auto metric = [&](const char* name, const char* kind, const char* help, const auto& value) {
    text += fmt::format("# HELP bitfed_{0} {1}\n# TYPE bitfed_{0} {2}\nbitfed_{0} {3}\n", name, help, kind,
                        value);
  };
  const auto ready =
      std::count_if(status.clients_known.begin(), status.clients_known.end(),
                    [](const FederationStatus::Client& client) { return client.state == "ready"; });
  metric("round", "gauge", "The round under way, or the last one", status.round);
  if (status.about) metric("rounds", "gauge", "Rounds of the federation", status.about->rounds);
  metric("clients_known", "gauge", "Clients that have ever come", status.clients_known.size());
  metric("clients_ready", "gauge", "Clients that can be given work", ready);
  metric("clients_awaited", "gauge", "Clients that the round waits for", status.waiting_for);
  metric("connections", "gauge", "Open connections", status.connections);
  metric("upload_bytes_total", "counter", "Bytes of updates, since this process began", status.upload_bytes);
  metric("download_bytes_total", "counter", "Bytes of broadcasts, since this process began",
         status.download_bytes);
  metric("answers_missed_total", "counter", "Chosen clients that a round ended without",
         status.answers_missed);
  metric("resident_bytes", "gauge", "Memory of the server", status.resident_bytes);
  if (!status.curve.empty()) {
    const FederationStatus::Round& last = status.curve.back();
    if (last.accuracy)
      metric("accuracy", "gauge", "Of the model after the last round, a fraction", *last.accuracy);
    metric("round_seconds", "gauge", "That the last round took", last.seconds);
  }
  text +=
      "# HELP bitfed_events_total Updates accepted, and faults by their kind\n# TYPE bitfed_events_total "
      "counter\n";
  for (const auto& [kind, count] : status.counts)
    text += fmt::format("bitfed_events_total{{kind=\"{}\"}} {}\n", kind, count);
  return text;
}

}  // namespace bitfed
