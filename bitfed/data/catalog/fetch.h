#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "bitfed/data/catalog/catalog.h"

namespace bitfed {

// Called now and then during a download: the file's name, bytes so far, bytes in all (0: not known).
using FetchProgress = std::function<void(const std::string& file, uint64_t done, uint64_t total)>;

struct FetchOptions {
  int attempts = 3;                            // a download that breaks off is tried again
  std::chrono::milliseconds first_wait{1000};  // before the second attempt; doubled for each further one
  std::string mirror;                          // replaces scheme and host of every address, if not empty
};

// The options as the environment has them: $BITFED_MIRROR.
FetchOptions fetch_options_from_environment();

// `url` with scheme and host replaced by those of `mirror`, whose own path is kept in front.
std::string mirrored(const std::string& url, const std::string& mirror);

// Downloads the files of a data set into `folder`. A file is written beside its final name and gets that
// name only once its sums are right; an archive is unpacked, not kept. Files that are there already, with
// the right sums, are left alone. Fails with an Error whose text names the address or the file.
void fetch_dataset(const DatasetEntry& entry, const std::filesystem::path& folder,
                   const FetchOptions& options, const FetchProgress& progress);

}  // namespace bitfed
