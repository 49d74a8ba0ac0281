#include "bitfed/run/status.h"

#include "bitfed/run/fields.h"

namespace bitfed {

void FederationStatus::About::fields(auto& self, auto& field) {
  field("name", self.name);
  field("method", self.method);
  field("dataset", self.dataset);
  field("federation", self.federation);
  field("rounds", self.rounds);
  field("clients", self.clients);
  field("clients_per_round", self.clients_per_round);
}

void FederationStatus::Client::fields(auto& self, auto& field) {
  field("client", self.client);
  field("name", self.name);
  field("state", self.state);
  field("samples", self.samples);
  field("last_round", self.last_round);
  field("peer", self.peer);
  field.if_set("certificate_seconds", self.certificate_seconds);
}

void FederationStatus::Round::fields(auto& self, auto& field) {
  field("round", self.round);
  field("seconds", self.seconds);
  field("uploads", self.uploads);
  field("upload_bytes", self.upload_bytes);
  field("accuracy", self.accuracy);
  field.if_set("epsilon", self.epsilon);
}

void FederationStatus::fields(auto& self, auto& field) {
  field.spread("name", self.about);
  field("phase", self.phase);
  field("round", self.round);
  field("waiting_for", self.waiting_for);
  field("connections", self.connections);
  field("upload_bytes", self.upload_bytes);
  field("download_bytes", self.download_bytes);
  field("answers_missed", self.answers_missed);
  field("waiting_seconds", self.waiting_seconds);
  field("waiting_bytes", self.waiting_bytes);
  field("waiting_offers", self.waiting_offers);
  field("dropped", self.dropped);
  field("paused", self.paused);
  field("connections_evicted", self.connections_evicted);
  field("connections_turned_away", self.connections_turned_away);
  field.if_set("disk_free_bytes", self.disk_free_bytes);
  field.if_set("server_certificate_seconds", self.server_certificate_seconds);
  field.if_set("first_client_certificate_seconds", self.first_client_certificate_seconds);
  field("counts", self.counts);
  field("resident_bytes", self.resident_bytes);
  field("clients_known", self.clients_known);
  field("curve", self.curve);
  field("faults", self.faults);
}

std::string status_text(const FederationStatus& status) {
  return write_fields(status).dump(1) + "\n";
}

}  // namespace bitfed
