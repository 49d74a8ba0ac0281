#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bitfed/run/events.h"
#include "bitfed/run/summary.h"
#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {

// A run's folder, as `bitfed run` leaves it.
struct RunFolder {
  std::filesystem::path folder;
  RunSummary summary;
  std::string summary_text;             // summary.json as found, with what another version wrote
  std::string recipe;                   // recipe.toml as found; empty: none
  std::vector<uint8_t> samples;         // samples.png as found, pictures of some samples; empty: none
  std::vector<ClientFinished> clients;  // ascending by round, then client
  std::vector<RoundFinished> rounds;    // ascending
  std::vector<TsetlinMember> machines;  // of the model, where it is a Tsetlin one and was loaded
  std::vector<std::string> columns;     // of the model's table, where it was loaded and names them
};

// Everything but the model. summary.json must be there; the other files may be missing. Where a resumed run
// did a round twice, the later records count; a last line of events.jsonl that a crash cut short is skipped.
// Anything else that is malformed is an input_error that names the file, line or field.
RunFolder read_run_folder(const std::filesystem::path& folder);

// The same, and model.safetensors if it is there.
RunFolder read_run_with_model(const std::filesystem::path& folder);

}  // namespace bitfed
