#include "bitfed/simulation/client_states.h"

#include <algorithm>
#include <charconv>

#include "bitfed/base/error.h"
#include "bitfed/model/state.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "round-";
constexpr std::string_view kSuffix = ".safetensors";

std::string tensor_name(size_t client) {
  return fmt::format("client-{:05}", client);
}

}  // namespace

fs::path ClientStates::file(uint32_t round) const {
  return folder_ / fmt::format("{}{:05}{}", kPrefix, round, kSuffix);
}

// Of the files that are there, ascending.
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

void ClientStates::put(uint32_t client, Bytes state) {
  states_[client] = std::move(state);
  changed_[client] = 1;
}

void ClientStates::save(uint32_t round) {
  State state;
  for (size_t client = 0; client < states_.size(); ++client) {
    if (changed_[client] != 0) state.add(tensor_name(client), {states_[client].size()}, states_[client]);
  }
  if (state.tensors().empty()) return;
  // Whatever the checkpoint before this one does not need goes now: until this one is whole, that one counts.
  for (const uint32_t saved : saved_rounds()) {
    std::error_code code;
    if (std::find(saved_in_.begin(), saved_in_.end(), saved) == saved_in_.end())
      fs::remove(file(saved), code);
  }
  create_folders(folder_);
  write_state(file(round), state);
  for (size_t client = 0; client < states_.size(); ++client) {
    if (std::exchange(changed_[client], uint8_t{0}) != 0) saved_in_[client] = round;
  }
}

void ClientStates::restore(uint32_t round) {
  for (const uint32_t saved : saved_rounds()) {
    std::error_code code;
    if (saved > round) {
      fs::remove(file(saved), code);
      continue;
    }
    const State state = read_state(file(saved));
    for (size_t client = 0; client < states_.size(); ++client) {
      if (!state.has(tensor_name(client))) continue;
      states_[client] = state.values<uint8_t>(tensor_name(client), {State::kAny});
      saved_in_[client] = saved;
    }
  }
}

}  // namespace bitfed
