#include "bitfed/federated/folder_store.h"

#include "bitfed/base/byte_io.h"

namespace bitfed {

void FolderStore::save(uint32_t /*round*/, const State& state) {
  create_folders(folder_);
  write_state(server_file(), state);
}

std::optional<State> FolderStore::load() const {
  std::error_code code;
  if (!std::filesystem::exists(server_file(), code)) return std::nullopt;
  return read_state(server_file());
}

}  // namespace bitfed
