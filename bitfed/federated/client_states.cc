#include "bitfed/federated/client_states.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <functional>
#include <numeric>
#include <utility>

#include "bitfed/base/error.h"
#include "bitfed/model/state.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "round-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr const char* kStates = "states";

// Calls `take` with each client of a file and where its state lies, counted from the first state. Checks
// everything.
void read_places(const State& file, size_t clients,
                 const std::function<void(uint32_t client, uint64_t offset, uint64_t size)>& take) {
  const auto who = file.values<uint32_t>("clients", {State::kAny});
  const auto sizes = file.values<uint64_t>("sizes", {who.size()});
  ByteReader reader(file.expect(kStates, Dtype::kU8, {State::kAny}).bytes, file.source());
  for (size_t i = 0; i < who.size(); ++i) {
    if (who[i] >= clients)
      throw input_error("{}: found client {}, expected fewer than {}", file.source(), who[i], clients);
    const size_t offset = reader.offset();
    reader.take(sizes[i]);
    take(who[i], offset, sizes[i]);
  }
  if (reader.left() > 0)
    throw input_error("{}: {} bytes after the last state, expected none", file.source(), reader.left());
}

// Where the states begin in a file of this size: tensors are contiguous and reach its end.
uint64_t begin_of_states(const State& file, uint64_t file_size) {
  uint64_t behind = 0;
  for (const Tensor& tensor : file.tensors()) {
    if (behind > 0 || tensor.name == kStates) behind += tensor.bytes.size();
  }
  return file_size - behind;
}

// Without a stream's buffer: it is done for every client of a round.
Bytes read_part(const fs::path& file, uint64_t offset, uint64_t size) {
  Bytes bytes(size);
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  uint64_t done = 0;
  while (descriptor >= 0 && done < size) {
    const ssize_t count =
        ::pread(descriptor, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count <= 0) break;
    done += static_cast<uint64_t>(count);
  }
  if (descriptor >= 0) ::close(descriptor);
  if (done < size) throw failure("{}: what a client kept cannot be read from it any more", file.string());
  return bytes;
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
  std::vector<uint32_t> rounds;
  for (const auto& [round, clients] : files_) {
    if (clients > 0) rounds.push_back(round);
  }
  return rounds;
}

void ClientStates::move_to(uint32_t client, const Place& place) {
  if (saved_[client].round > 0) --files_[saved_[client].round];
  saved_[client] = place;
  ++files_[place.round];
}

Bytes ClientStates::of(uint32_t client) const {
  Place place;
  {
    const std::lock_guard lock(mutex_);
    for (const auto* states : {&unsaved_, &being_saved_}) {
      if (const auto state = states->find(client); state != states->end()) return state->second;
    }
    place = saved_[client];
  }
  return place.size == 0 ? Bytes() : read_part(file(place.round), place.offset, place.size);
}

void ClientStates::put(uint32_t client, Bytes state) {
  const std::lock_guard lock(mutex_);
  unsaved_[client] = std::move(state);
  ++versions_[client];
  judged_.erase(client);
}

void ClientStates::put(uint32_t client, Bytes state, const Judged& judged) {
  put(client, std::move(state));
  const std::lock_guard lock(mutex_);
  judged_[client] = judged;
}

std::optional<ClientStates::Judged> ClientStates::judged(uint32_t client) const {
  const std::lock_guard lock(mutex_);
  const auto known = judged_.find(client);
  return known == judged_.end() ? std::nullopt : std::optional(known->second);
}

std::vector<uint32_t> ClientStates::save(uint32_t round) {
  assert(being_saved_.empty());
  if (unsaved_.empty()) return needed_rounds();
  // Files of an earlier process that came to no checkpoint.
  if (files_.empty()) {
    for (const uint32_t saved : saved_rounds()) files_[saved] = 0;
  }
  // Until this checkpoint is complete, the previous one counts: only files that it does not need are removed.
  std::erase_if(files_, [&](const auto& entry) {
    std::error_code code;
    return entry.second == 0 && (fs::remove(file(entry.first), code), true);
  });
  const std::lock_guard lock(mutex_);
  being_saved_ = std::exchange(unsaved_, {});
  being_saved_round_ = round;
  for (const auto& [client, kept] : being_saved_) move_to(client, {round, 0, kept.size()});
  return needed_rounds();
}

// Nothing but this function and save() changes being_saved_: it is read without the lock.
void ClientStates::write_saved() {
  if (being_saved_.empty()) return;
  std::vector<uint32_t> clients;
  std::vector<uint64_t> sizes;
  ByteParts parts;  // of many clients they are large: written from where they are
  for (const auto& [client, kept] : being_saved_) {
    clients.push_back(client);
    sizes.push_back(kept.size());
    parts.emplace_back(kept);
  }
  create_folders(folder_);
  State state;
  state.add("clients", {clients.size()}, clients);
  state.add("sizes", {sizes.size()}, sizes);
  const fs::path path = file(being_saved_round_);
  write_state(path, state, kStates, parts);
  uint64_t offset = fs::file_size(path) - std::reduce(sizes.begin(), sizes.end());
  std::map<uint32_t, Bytes> written;  // freed without the lock
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < clients.size(); ++i) {
    saved_[clients[i]].offset = offset;
    offset += sizes[i];
  }
  written = std::exchange(being_saved_, {});
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
    files_.try_emplace(saved, 0);
    const State state = read_state(file(saved));
    const uint64_t begin = begin_of_states(state, fs::file_size(file(saved)));
    read_places(state, size(), [&](uint32_t client, uint64_t offset, uint64_t bytes) {
      move_to(client, {saved, begin + offset, bytes});
      ++versions_[client];
    });
  }
}

}  // namespace bitfed
