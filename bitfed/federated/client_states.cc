#include "bitfed/federated/client_states.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <functional>
#include <numeric>
#include <utility>

#include "bitfed/base/direct_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/stopwatch.h"
#include "bitfed/model/state.h"
#include "bitfed/model/state_parts.h"

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

}  // namespace

// Not slow before enough was read. Once slow, always: what then lies in the page cache says nothing of the
// disk.
bool ClientStates::Disk::is_slow() const {
  return reads_ >= kEnough && seconds_ > kSlowSeconds * reads_;
}

void ClientStates::Disk::note(double seconds) {
  seconds_ = seconds_ + seconds;
  reads_ = reads_ + 1;
}

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

Bytes ClientStates::read(const Place& place) const {
  Bytes bytes(place.size);
  const fs::path path = file(place.round);
  const Stopwatch clock;
  const bool is_slow = disk_.is_slow();
  if (!(is_slow ? read_cached(path, place.offset, bytes) : read_directly(path, place.offset, bytes)))
    throw failure("{}: what a client kept cannot be read from it any more", path.string());
  if (!is_slow) disk_.note(clock.seconds());
  return bytes;
}

Bytes ClientStates::of(uint32_t client) const {
  Bytes read_before = ahead_.take(client);
  Place place;
  {
    const std::lock_guard lock(mutex_);
    for (const auto* states : {&unsaved_, &being_saved_}) {
      if (const auto state = states->find(client); state != states->end()) return state->second;
    }
    place = saved_[client];
  }
  if (place.size == 0) return {};
  return read_before.empty() ? read(place) : read_before;
}

// With the lock.
bool ClientStates::is_in_memory(uint32_t client) const {
  return unsaved_.contains(client) || being_saved_.contains(client);
}

// An error is left to the one who asks for the state.
Bytes ClientStates::read_for_later(uint32_t client) const {
  Place place;
  {
    const std::lock_guard lock(mutex_);
    if (is_in_memory(client)) return {};
    place = saved_[client];
  }
  try {
    return read(place);
  } catch (const Error&) {
    return {};
  }
}

void ClientStates::read_ahead(const std::vector<uint32_t>& clients) {
  std::vector<uint32_t> on_disk;
  {
    const std::lock_guard lock(mutex_);
    std::copy_if(clients.begin(), clients.end(), std::back_inserter(on_disk),
                 [&](uint32_t client) { return saved_[client].size > 0 && !is_in_memory(client); });
  }
  ahead_.want(std::move(on_disk));
}

void ClientStates::put(uint32_t client, Bytes state) {
  ahead_.take(client);  // what was read before it
  const std::lock_guard lock(mutex_);
  Bytes& unsaved = unsaved_[client];
  unsaved_bytes_ += state.size() - unsaved.size();
  unsaved = std::move(state);
  ++versions_[client];
  judged_.erase(client);
}

bool ClientStates::should_save() const {
  const std::lock_guard lock(mutex_);
  return unsaved_bytes_ >= kUnsavedBytes;
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
  unsaved_bytes_ = 0;
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
  if (disk_.is_slow()) {
    write_state(path, state, kStates, parts);
  } else {
    write_state_directly(path, state, kStates, parts);
  }
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
