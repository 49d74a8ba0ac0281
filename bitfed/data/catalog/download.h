#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace bitfed {

// Downloads http, https or file addresses with libcurl into `path`, following redirects to http and https.
// Returns "" on success, else the reason; `retry` then says whether another attempt may help. Throws where
// the program was built without libcurl or the file cannot be written.
std::string download(const std::string& url, const std::filesystem::path& path,
                     const std::function<void(uint64_t done, uint64_t total)>& progress, bool& retry);

}  // namespace bitfed
