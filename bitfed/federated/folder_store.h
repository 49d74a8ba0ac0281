#pragma once

#include <filesystem>

#include "bitfed/federated/round_store.h"
#include "bitfed/federated/upload_store.h"

namespace bitfed {

// A run's checkpoint folder: server.safetensors and the uploads, one file each.
class FolderStore : public RoundStore {
 public:
  explicit FolderStore(std::filesystem::path folder) : folder_(std::move(folder)), uploads_(folder_) {}

  bool has_round(uint32_t round) const override { return uploads_.has_round(round); }
  void put(uint32_t round, const ClientResult& result, const std::string& depends_on) override {
    uploads_.put(round, result, depends_on);
  }
  std::optional<ClientResult> find(uint32_t round, uint32_t client,
                                   const std::string& depends_on) const override {
    return uploads_.find(round, client, depends_on);
  }
  void remove_round(uint32_t round) override { uploads_.remove_round(round); }

  void save(uint32_t round, const State& state) override;
  std::optional<State> load() const override;

 private:
  std::filesystem::path server_file() const { return folder_ / "server.safetensors"; }

  std::filesystem::path folder_;
  UploadStore uploads_;
};

}  // namespace bitfed
