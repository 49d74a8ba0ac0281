#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "bitfed/federated/transport.h"

namespace bitfed {

// The uploads of a round on disk, one file per client, each complete or absent. What an upload depends on is
// stored next to it as text and must be the same when it is used again.
class UploadStore {
 public:
  explicit UploadStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void put(uint32_t round, const ClientResult& result, const std::string& depends_on) const;

  // The upload; empty where none is stored completely. One that depends on something else is an input_error
  // that shows the first difference.
  std::optional<ClientResult> find(uint32_t round, uint32_t client, const std::string& depends_on) const;

  bool has_round(uint32_t round) const;
  void remove_round(uint32_t round) const;

 private:
  std::filesystem::path round_folder(uint32_t round) const;

  std::filesystem::path folder_;
};

}  // namespace bitfed
