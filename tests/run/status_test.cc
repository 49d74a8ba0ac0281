#include "bitfed/run/status.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace bitfed {
namespace {

TEST(Status, AsJson) {
  FederationStatus status;
  status.about = {.name = "n",
                  .method = "m",
                  .dataset = "d",
                  .federation = "f",
                  .rounds = 1,
                  .clients = 2,
                  .clients_per_round = 3};
  status.phase = "training";
  status.round = 4;
  status.waiting_for = 5;
  status.connections = 6;
  status.upload_bytes = 7;
  status.download_bytes = 8;
  status.answers_missed = 9;
  status.waiting_seconds = 1.5;
  status.waiting_bytes = 21;
  status.waiting_offers = 22;
  status.dropped = 23;
  status.paused = true;
  status.connections_evicted = 24;
  status.connections_turned_away = 25;
  status.disk_free_bytes = 26;
  status.server_certificate_seconds = 27;
  status.first_client_certificate_seconds = -28;
  status.counts = {{"accepted", 10}};
  status.resident_bytes = 11;
  status.clients_known = {
      {.client = 12, .name = "c", .state = "ready", .samples = 13, .last_round = 14, .peer = "p"},
      {.client = 15, .name = "e", .state = "away"}};
  status.curve = {{.round = 16, .seconds = 0.5, .uploads = 17, .upload_bytes = 18, .accuracy = 0.25}};
  status.faults = {{.kind = "late", .client = 19, .name = "g", .peer = "h", .text = "t"}};
  const std::string compact = nlohmann::ordered_json::parse(status_text(status)).dump();
  EXPECT_EQ(
      compact,
      R"({"name":"n","method":"m","dataset":"d","federation":"f","rounds":1,"clients":2,"clients_per_round":3,)"
      R"("phase":"training","round":4,"waiting_for":5,"connections":6,"upload_bytes":7,"download_bytes":8,)"
      R"("answers_missed":9,"waiting_seconds":1.5,"waiting_bytes":21,"waiting_offers":22,"dropped":23,)"
      R"("paused":true,"connections_evicted":24,"connections_turned_away":25,"disk_free_bytes":26,)"
      R"("server_certificate_seconds":27,"first_client_certificate_seconds":-28,)"
      R"("counts":{"accepted":10},"resident_bytes":11,)"
      R"("clients_known":[{"client":12,"name":"c","state":"ready","samples":13,"last_round":14,"peer":"p"},)"
      R"({"client":15,"name":"e","state":"away","samples":null,"last_round":null,"peer":""}],)"
      R"("curve":[{"round":16,"seconds":0.5,"uploads":17,"upload_bytes":18,"accuracy":0.25}],)"
      R"("faults":[{"event":"client-fault","kind":"late","client":19,"name":"g","peer":"h","text":"t"}]})");
}

TEST(Status, BeforeTheRunHasStarted) {
  EXPECT_TRUE(status_text({}).starts_with("{\n \"phase\": \"loading\",\n \"round\": 0,\n"));
}

}  // namespace
}  // namespace bitfed
