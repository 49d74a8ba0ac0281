#include "bitfed/federated/client_states.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>

#include "bitfed/base/error.h"
#include "bitfed/model/state.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "round-";
constexpr std::string_view kSuffix = ".safetensors";

// Calls `take` with each client of a file and its state. Checks everything.
void read_states(const State& file, size_t clients,
                 const std::function<void(uint32_t client, Bytes state)>& take) {
  const auto who = file.values<uint32_t>("clients", {State::kAny});
  const auto sizes = file.values<uint64_t>("sizes", {who.size()});
  const Bytes& bytes = file.expect("states", Dtype::kU8, {State::kAny}).bytes;
  ByteReader reader(bytes, file.source());
  for (size_t i = 0; i < who.size(); ++i) {
    if (who[i] >= clients)
      throw input_error("{}: found client {}, expected fewer than {}", file.source(), who[i], clients);
    const auto state = reader.take(sizes[i]);
    take(who[i], Bytes(state.begin(), state.end()));
  }
  if (reader.left() > 0)
    throw input_error("{}: {} bytes after the last state, expected none", file.source(), reader.left());
}

}  // namespace

fs::path ClientStates::file(uint32_t round) const {
  return folder_ / fmt::format("{}{:05}{}", kPrefix, round, kSuffix);
}

// The rounds of the files that exist, ascending.
std::vector<uint32_t> ClientStates::saved_rounds() const {
  std::vector<uint32_t> rounds;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder_, code)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    uint32_t round = 0;
    const char* const last = name.data() + name.size() - kSuffix.size();
    const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), last, round);
    if (error == std::errc() && end == last) rounds.push_back(round);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds;
}

// The rounds of the files that hold a client's last state, ascending.
std::vector<uint32_t> ClientStates::needed_rounds() const {
  std::set<uint32_t> rounds(saved_in_.begin(), saved_in_.end());
  rounds.erase(0);
  return {rounds.begin(), rounds.end()};
}

void ClientStates::put(uint32_t client, Bytes state) {
  states_[client] = std::move(state);
  changed_[client] = 1;
}

std::vector<uint32_t> ClientStates::save(uint32_t round) {
  std::vector<uint32_t> clients;
  std::vector<uint64_t> sizes;
  Bytes states;
  for (size_t client = 0; client < states_.size(); ++client) {
    if (changed_[client] == 0) continue;
    clients.push_back(static_cast<uint32_t>(client));
    sizes.push_back(states_[client].size());
    states.insert(states.end(), states_[client].begin(), states_[client].end());
  }
  if (clients.empty()) return needed_rounds();
  // Until this checkpoint is complete, the previous one counts: only files that it does not need are removed.
  for (const uint32_t saved : saved_rounds()) {
    std::error_code code;
    if (std::find(saved_in_.begin(), saved_in_.end(), saved) == saved_in_.end())
      fs::remove(file(saved), code);
  }
  create_folders(folder_);
  State state;
  state.add("clients", {clients.size()}, clients);
  state.add("sizes", {sizes.size()}, sizes);
  state.add("states", {states.size()}, states);
  write_state(file(round), state);
  for (const uint32_t client : clients) {
    changed_[client] = 0;
    saved_in_[client] = round;
  }
  return needed_rounds();
}

void ClientStates::restore(uint32_t round, const std::vector<uint32_t>& needed) {
  for (const uint32_t saved : needed) {
    std::error_code code;
    if (!fs::exists(file(saved), code)) {
      throw input_error("{}: missing, and the checkpoint of round {} needs what clients kept in it",
                        file(saved).string(), round);
    }
  }
  for (const uint32_t saved : saved_rounds()) {
    std::error_code code;
    if (saved > round) {
      fs::remove(file(saved), code);
      continue;
    }
    read_states(read_state(file(saved)), states_.size(), [&](uint32_t client, Bytes state) {
      states_[client] = std::move(state);
      saved_in_[client] = saved;
    });
  }
}

}  // namespace bitfed
