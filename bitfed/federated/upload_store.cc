#include "bitfed/federated/upload_store.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/base/text_difference.h"
#include "bitfed/model/json_fields.h"

namespace bitfed {
namespace fs = std::filesystem;

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
  const nlohmann::ordered_json note = {{"client", result.client},
                                       {"samples", result.samples},
                                       {"trained_samples", result.trained_samples},
                                       {"train_seconds", result.train_seconds},
                                       {"reused", result.reused},
                                       {"sha256", sha256_hex(result.upload)},
                                       {"depends_on", depends_on}};
  // The note comes last and vouches for the upload.
  write_file_atomically(name.string() + ".safetensors", result.upload);
  write_file_atomically(name.string() + ".json", note.dump(1) + "\n");
}

std::optional<ClientResult> UploadStore::find(uint32_t round, uint32_t client,
                                              const std::string& depends_on) const {
  const fs::path name = round_folder(round) / fmt::format("client-{:05}", client);
  const std::string note_file = name.string() + ".json";
  std::error_code code;
  if (!fs::exists(note_file, code)) return std::nullopt;
  const nlohmann::json note = parse_json(read_text_file(note_file), note_file);
  const std::string made_with = json_string(note, "depends_on", note_file);
  if (made_with != depends_on) {
    throw input_error("{}: the upload was made with other settings: {}", note_file,
                      first_difference(made_with, depends_on));
  }
  ClientResult result;
  result.client = client;
  result.samples = static_cast<uint64_t>(json_integer(note, "samples", 0, INT64_MAX, note_file));
  result.trained_samples =
      static_cast<uint64_t>(json_integer(note, "trained_samples", 0, INT64_MAX, note_file));
  const nlohmann::json& seconds = json_field(note, "train_seconds", note_file);
  if (!seconds.is_number()) throw input_error("{}: field 'train_seconds': expected a number", note_file);
  result.train_seconds = seconds.get<double>();
  const nlohmann::json& reused = json_field(note, "reused", note_file);
  if (!reused.is_boolean()) throw input_error("{}: field 'reused': expected true or false", note_file);
  result.reused = reused.get<bool>();
  result.upload = read_file(name.string() + ".safetensors");
  if (sha256_hex(result.upload) != json_string(note, "sha256", note_file)) {
    throw input_error("{}.safetensors: its digest is not the one in its note: damaged, remove both",
                      name.string());
  }
  return result;
}

}  // namespace bitfed
