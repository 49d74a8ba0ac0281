#include "bitfed/federated/upload_store.h"

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/base/text_difference.h"
#include "bitfed/model/json_fields.h"
#include "bitfed/run/fields.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

// The .json file next to an upload.
struct UploadNote {
  uint32_t client = 0;
  uint64_t samples = 0;
  uint64_t trained_samples = 0;
  double train_seconds = 0;
  bool reused = false;
  std::string sha256;
  std::string depends_on;

  static void fields(auto& self, auto& field) {
    field("client", self.client);
    field("samples", self.samples);
    field("trained_samples", self.trained_samples);
    field("train_seconds", self.train_seconds);
    field("reused", self.reused);
    field("sha256", self.sha256);
    field("depends_on", self.depends_on);
  }
};

}  // namespace

fs::path UploadStore::round_folder(uint32_t round) const {
  return folder_ / fmt::format("round-{:05}", round);
}

bool UploadStore::has_round(uint32_t round) const {
  std::error_code code;
  return fs::is_directory(round_folder(round), code);
}

void UploadStore::remove_round(uint32_t round) const {
  std::error_code code;
  fs::remove_all(round_folder(round), code);
}

void UploadStore::put(uint32_t round, const ClientResult& result, const std::string& depends_on) const {
  create_folders(round_folder(round));
  const fs::path name = round_folder(round) / fmt::format("client-{:05}", result.client);
  const UploadNote note{.client = result.client,
                        .samples = result.samples,
                        .trained_samples = result.trained_samples,
                        .train_seconds = result.train_seconds,
                        .reused = result.reused,
                        .sha256 = sha256_hex(result.upload),
                        .depends_on = depends_on};
  // The note is written last: an upload that has one is whole.
  write_file_atomically(name.string() + ".safetensors", result.upload);
  write_file_atomically(name.string() + ".json", write_fields(note).dump(1) + "\n");
}

std::optional<ClientResult> UploadStore::find(uint32_t round, uint32_t client,
                                              const std::string& depends_on) const {
  const fs::path name = round_folder(round) / fmt::format("client-{:05}", client);
  const std::string note_file = name.string() + ".json";
  std::error_code code;
  if (!fs::exists(note_file, code)) return std::nullopt;
  const auto note = read_fields<UploadNote>(parse_json(read_text_file(note_file), note_file), note_file);
  if (note.depends_on != depends_on) {
    throw input_error("{}: the upload was made with other settings: {}", note_file,
                      first_difference(note.depends_on, depends_on));
  }
  ClientResult result;
  result.client = client;
  result.samples = note.samples;
  result.trained_samples = note.trained_samples;
  result.train_seconds = note.train_seconds;
  result.reused = note.reused;
  result.upload = read_file(name.string() + ".safetensors");
  if (sha256_hex(result.upload) != note.sha256) {
    throw input_error("{}.safetensors: its digest is not the one in its note: damaged, remove both",
                      name.string());
  }
  return result;
}

}  // namespace bitfed
