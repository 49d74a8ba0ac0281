#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "bitfed/data/catalog/catalog.h"

namespace bitfed {

// Called periodically during a download: the file's name, bytes so far, total bytes (0: unknown).
using FetchProgress = std::function<void(const std::string& file, uint64_t done, uint64_t total)>;

struct FetchOptions {
  int attempts = 3;                            // an interrupted download is retried
  std::chrono::milliseconds first_wait{1000};  // before the second attempt; doubled for each further attempt
  std::string mirror;                          // replaces scheme and host of every address, if not empty
};

// Options from the environment: $BITFED_MIRROR.
FetchOptions fetch_options_from_environment();

// `url` with scheme and host replaced by `mirror`, whose own path becomes a prefix.
std::string mirrored(const std::string& url, const std::string& mirror);

// Downloads the files of a data set into `folder`. A file is written to a temporary name and renamed only
// once its checksums are verified; an archive is unpacked, not kept. Existing files with the right checksums
// stay as they are. Fails with an Error that names the address or the file.
void fetch_dataset(const DatasetEntry& entry, const std::filesystem::path& folder,
                   const FetchOptions& options, const FetchProgress& progress);

}  // namespace bitfed
