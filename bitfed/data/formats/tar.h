#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitfed {

// A regular file of a tar archive; `bytes` points into the archive.
struct TarFile {
  std::string path;
  std::span<const uint8_t> bytes;
};

// The regular files of a tar archive (POSIX ustar, or GNU's older form of it). Folders are skipped. An
// absolute path, a path that leads upward, a link, a device or any other type of entry is an input_error: the
// result is safe to write below a folder.
std::vector<TarFile> parse_tar(std::span<const uint8_t> bytes, std::string_view name);

}  // namespace bitfed
