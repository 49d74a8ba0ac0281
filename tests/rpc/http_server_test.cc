#include "bitfed/rpc/server/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "bitfed/rpc/server/live_status.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

int connect_to(uint16_t port) {
  const int handle = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(handle, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return handle;
}

std::string ask(uint16_t port, const std::string& request) {
  const int handle = connect_to(port);
  send(handle, request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  char bytes[4096];
  for (ssize_t size; (size = recv(handle, bytes, sizeof bytes, 0)) > 0;) answer.append(bytes, size);
  close(handle);
  return answer;
}

TEST(HttpServer, Answers) {
  const auto server = make_http_server("127.0.0.1:0", [](const std::string& path) {
    if (path == "/bad") throw std::runtime_error("no");
    return HttpResponse{200, "text/html", path + std::string(300000, 'x')};
  });
  // Connections that say nothing are in nobody's way.
  const int silent = connect_to(server->port());
  const std::string answer = ask(server->port(), "GET /page HTTP/1.1\r\nHost: 127.0.0.1:9100\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 300005\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\n/pagexxx"));
  EXPECT_EQ(answer.size() - answer.find("\r\n\r\n") - 4, 300005u);
  EXPECT_THAT(ask(server->port(), "POST / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(ask(server->port(), "nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask(server->port(), "GET /bad HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 500"));
  EXPECT_EQ(ask(server->port(), std::string(9000, 'x')), "");
  close(silent);
}

TEST(HttpServer, OnlyItsOwnHost) {
  const auto server = make_http_server("127.0.0.1:0", [](const std::string&) { return HttpResponse{}; });
  const auto status = [&](const std::string& host) {
    return ask(server->port(), "GET / HTTP/1.1\r\nAccept: *\r\n" + host + "\r\n").substr(9, 3);
  };
  for (const char* good : {"", "Host: localhost\r\n", "host:127.0.0.1:80\r\n", "HOST: [::1]:9\r\n"})
    EXPECT_EQ(status(good), "200") << good;
  for (const char* bad : {"Host: evil.example\r\n", "Host: 127.0.0.1.evil.example:80\r\n", "Host:\r\n"})
    EXPECT_EQ(status(bad), "403") << bad;
}

// Slow connections, more than there are places: a probe is answered all the same.
TEST(HttpServer, SlowConnectionsDoNotStarveProbes) {
  const auto server = make_http_server("127.0.0.1:0", [](const std::string&) { return HttpResponse{}; });
  std::vector<int> slow;
  for (int i = 0; i < 40; ++i) slow.push_back(connect_to(server->port()));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(ask(server->port(), "GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  for (const int handle : slow) close(handle);
}

TEST(HttpServer, Addresses) {
  const auto answer = [](const std::string&) { return HttpResponse{}; };
  for (const char* listen : {"nowhere", "localhost:1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:1x"})
    EXPECT_THAT(error_text([&] { make_http_server(listen, answer); }),
                HasSubstr("expected an address and a port"));
  const auto first = make_http_server("127.0.0.1:0", answer);
  EXPECT_THAT(error_text([&] { make_http_server("127.0.0.1:" + std::to_string(first->port()), answer); }),
              HasSubstr("cannot be listened on"));
}

TEST(LiveStatus, Metrics) {
  LiveStatus live;
  RunStarted started;
  started.rounds = 5;
  live.receive(started);
  live.receive(RoundStarted{.round = 1});
  live.receive(RoundFinished{.round = 1,
                             .uploads = 2,
                             .upload_bytes = 30,
                             .download_bytes = 40,
                             .scores = Scores{.accuracy = 0.25}});
  live.receive(ClientLost{.round = 1, .client = 1});
  live.receive(ClientFault{.kind = "late", .name = "x", .text = "t"});
  CoordinatorStatus now;
  now.clients.resize(2);
  now.clients[0].ready = true;
  now.connections = 4;
  now.counts = {{"accepted", 2}, {"late", 1}};
  now.waiting_seconds = 2000;
  now.network.server_certificate_seconds = 86400;
  const FederationStatus snapshot = live.snapshot(now);
  EXPECT_EQ(snapshot.about->rounds, 5u);
  EXPECT_EQ(snapshot.phase, "between rounds");
  EXPECT_EQ(snapshot.curve.at(0).accuracy, 0.25);
  EXPECT_EQ(snapshot.clients_known.at(1).state, "away");
  EXPECT_EQ(snapshot.faults.at(0).kind, "late");
  EXPECT_THAT(not_ready(snapshot), HasSubstr("2000 s without progress"));
  now.waiting_seconds = 5;
  EXPECT_EQ(not_ready(live.snapshot(now)), "");
  now.paused = true;
  EXPECT_THAT(not_ready(live.snapshot(now)), HasSubstr("paused"));
  const std::string text = prometheus_text(snapshot);
  for (const char* line :
       {"\nbitfed_round 1\n", "\nbitfed_rounds 5\n", "\nbitfed_clients_known 2\n",
        "\nbitfed_clients_ready 1\n", "\nbitfed_connections 4\n", "\nbitfed_upload_bytes_total 30\n",
        "\nbitfed_download_bytes_total 40\n", "\nbitfed_answers_missed_total 1\n", "\nbitfed_accuracy 0.25\n",
        "\nbitfed_waiting_seconds 2000\n", "\nbitfed_server_certificate_seconds 86400\n",
        "\nbitfed_paused 0\n", "\nbitfed_events_total{kind=\"accepted\"} 2\n",
        "\nbitfed_events_total{kind=\"late\"} 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

// What differential privacy has spent, in /metrics and in /status.json; without it neither names it.
TEST(LiveStatus, Epsilon) {
  LiveStatus live;
  live.receive(RoundFinished{.round = 1, .scores = Scores{.accuracy = 0.25}});
  FederationStatus snapshot = live.snapshot({});
  EXPECT_THAT(prometheus_text(snapshot), Not(HasSubstr("epsilon")));
  EXPECT_THAT(status_text(snapshot), Not(HasSubstr("epsilon")));
  live.receive(RoundFinished{.round = 2, .scores = Scores{.accuracy = 0.5}, .epsilon = 1.5});
  live.receive(RoundFinished{.round = 3, .scores = Scores{.accuracy = 0.5}, .epsilon = 1.75});
  snapshot = live.snapshot({});
  EXPECT_THAT(prometheus_text(snapshot), HasSubstr("\nbitfed_privacy_epsilon 1.75\n"));
  const auto curve = nlohmann::json::parse(status_text(snapshot)).at("curve");
  EXPECT_FALSE(curve.at(0).contains("epsilon"));
  EXPECT_EQ(curve.at(1).at("epsilon"), 1.5);
  EXPECT_EQ(curve.at(2).at("epsilon"), 1.75);
}

}  // namespace
}  // namespace bitfed
