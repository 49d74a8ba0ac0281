// What secure aggregation costs a client and the server in one round, on one core:
//   secure_aggregation CLIENTS ELEMENTS BITS LOST
// Prints one row of the table in docs/results/secure-aggregation.md. Times are CPU time of this process;
// those of ten clients are averaged. They have met the others in the last hour. With one that it has not, a
// client agrees on a channel first, and over TLS checks its signature.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <numeric>

#include "bitfed/secure/protocol/secure_client.h"
#include "bitfed/secure/protocol/secure_server.h"

namespace bitfed {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure(uint32_t count, size_t elements, uint32_t bits, uint32_t lost) {
  const uint32_t timed = std::min(count, 10u);
  const Digest session = session_of("benchmark", 1, 0, "");
  const auto nobody = std::make_shared<NoIdentity>();
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0u);
  std::vector<std::shared_ptr<Channel>> channels;
  for (const uint32_t n : numbers)
    channels.push_back(std::make_shared<Channel>(random_secret(), "benchmark", n, nobody));
  for (uint32_t n = 0; n < timed; ++n) {
    for (const auto& other : channels) channels[n]->agree(other->keys().channel);
  }
  std::vector<SecureClient> clients;
  for (const uint32_t n : numbers)
    clients.emplace_back(ClientSession{session, random_secret()}, channels[n], 3);
  SecureServer server(session, numbers, 3);
  double client_seconds = 0, server_seconds = 0;
  size_t up = 0, down = 0;
  const auto by_client = [&](uint32_t n, const auto& work) {
    const double begin = cpu_seconds();
    Bytes bytes = work();
    if (n < timed) client_seconds += (cpu_seconds() - begin) / timed;
    if (n == 0) up += bytes.size();
    return bytes;
  };
  const auto by_server = [&](const auto& work) {
    const double begin = cpu_seconds();
    const auto result = work();
    server_seconds += cpu_seconds() - begin;
    return result;
  };
  const auto message = [&](uint32_t n) {
    Bytes bytes = by_server([&] { return server.message_for(n); });
    if (n == 0) down += bytes.size();
    return bytes;
  };
  for (const uint32_t n : numbers) {
    const Bytes keys = by_client(n, [&] { return clients[n].keys(); });
    by_server([&] { return server.add_keys(n, keys); });
  }
  by_server([&] { return server.end_keys(); });
  for (const uint32_t n : numbers) {
    const Bytes list = message(n);
    const Bytes shares = by_client(n, [&] { return clients[n].shares_for(list); });
    by_server([&] { return server.add_shares(n, shares); });
  }
  by_server([&] { return server.end_shares(); });
  ModularVector update = ModularVector::zero({{elements, bits}});
  for (const uint32_t n : numbers) {
    const Bytes shares = message(n);
    by_client(n, [&] {
      clients[n].take_shares(shares);
      if (n < timed) clients[n].mask(&update);
      return Bytes();
    });
  }
  // The first ones stay.
  std::vector<uint32_t> survivors(numbers.begin(), numbers.end() - lost);
  by_server([&] { return server.end_updates(survivors); });
  for (const uint32_t n : survivors) {
    const Bytes request = message(n);
    const Bytes opened = by_client(n, [&] { return clients[n].open(request); });
    by_server([&] { return server.add_opened(n, opened); });
  }
  const double opening = server_seconds;
  by_server([&] { return server.masks(update.fields).values.size(); });
  const size_t packed = update.pack().size();
  fmt::print(
      "| {} | {} x {} bits | {} | {:.1f} ms | {:.0f} ms ({:.0f} ms of it opening) | {} | {} + {} | {} |\n",
      count, elements, bits, lost, 1e3 * client_seconds, 1e3 * server_seconds,
      1e3 * (server_seconds - opening), 4 * elements, packed, up, down);
}

}  // namespace
}  // namespace bitfed

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: secure_aggregation CLIENTS ELEMENTS BITS LOST\n");
    return 2;
  }
  const auto number = [&](int i) { return static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)); };
  bitfed::measure(number(1), number(2), number(3), number(4));
}
