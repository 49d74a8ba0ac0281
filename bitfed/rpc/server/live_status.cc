#include "bitfed/rpc/server/live_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace bitfed {
namespace {

constexpr size_t kMaxRounds = 2000;  // of the curve; beyond that older ones are thinned out
constexpr size_t kMaxFaults = 50;
constexpr double kStalledSeconds = 1800;  // without progress: not ready

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
  result.certificate_seconds = client.certificate_seconds;
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
                           .accuracy = event.scores ? std::optional(event.scores->accuracy) : std::nullopt,
                           .epsilon = event.epsilon});
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
  result.waiting_seconds = now.waiting_seconds;
  result.waiting_bytes = now.waiting_bytes;
  result.waiting_offers = now.waiting_offers;
  result.dropped = now.dropped;
  result.paused = now.paused;
  result.connections_evicted = now.network.evicted;
  result.connections_turned_away = now.network.turned_away;
  result.server_certificate_seconds = now.network.server_certificate_seconds;
  result.first_client_certificate_seconds = now.network.first_client_certificate_seconds;
  result.counts = now.counts;
  result.resident_bytes = resident_bytes();
  for (const CoordinatorStatus::Client& client : now.clients)
    result.clients_known.push_back(client_of(client));
  result.faults.assign(faults_.begin(), faults_.end());
  return result;
}

std::string not_ready(const FederationStatus& status) {
  if (status.paused) return "paused by an operator";
  if (status.waiting_seconds < kStalledSeconds || status.phase == "finished") return "";
  return fmt::format("{}, round {}: {:.0f} s without progress, waiting for {} clients", status.phase,
                     status.round, status.waiting_seconds, status.waiting_for);
}

std::string prometheus_text(const FederationStatus& status) {
  std::string text;
  const auto metric = [&](const char* name, const char* kind, const char* help, const auto& value) {
    text += fmt::format("# HELP bitfed_{0} {1}\n# TYPE bitfed_{0} {2}\nbitfed_{0} {3}\n", name, help, kind,
                        value);
  };
  const auto if_set = [&](const char* name, const char* kind, const char* help, const auto& optional) {
    if (optional) metric(name, kind, help, *optional);
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
  metric("waiting_seconds", "gauge", "Since a round, an update or a client last came",
         status.waiting_seconds);
  metric("waiting_bytes", "gauge", "Bytes reserved for updates on their way in", status.waiting_bytes);
  metric("waiting_offers", "gauge", "Updates that wait for their round or for room", status.waiting_offers);
  metric("clients_dropped", "gauge", "Clients that rounds do not wait for", status.dropped);
  metric("paused", "gauge", "1 while an operator has paused the federation", status.paused ? 1 : 0);
  metric("connections_evicted_total", "counter", "Connections without a certificate, cut for newer ones",
         status.connections_evicted);
  metric("connections_turned_away_total", "counter", "Connections closed for lack of file descriptors",
         status.connections_turned_away);
  if_set("disk_free_bytes", "gauge", "Free space where the state lies", status.disk_free_bytes);
  if_set("server_certificate_seconds", "gauge", "Until the server's certificate expires",
         status.server_certificate_seconds);
  if_set("first_client_certificate_seconds", "gauge",
         "Until the first certificate of a connected client expires",
         status.first_client_certificate_seconds);
  metric("upload_bytes_total", "counter", "Bytes of updates, since this process began", status.upload_bytes);
  metric("download_bytes_total", "counter", "Bytes of broadcasts, since this process began",
         status.download_bytes);
  metric("answers_missed_total", "counter", "Chosen clients that a round ended without",
         status.answers_missed);
  metric("resident_bytes", "gauge", "Memory of the server", status.resident_bytes);
  if (!status.curve.empty()) {
    const FederationStatus::Round& last = status.curve.back();
    if_set("accuracy", "gauge", "Of the model after the last round, a fraction", last.accuracy);
    if_set("privacy_epsilon", "gauge", "Spent by differential privacy so far", last.epsilon);
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
