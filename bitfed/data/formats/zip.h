#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/base/byte_io.h"

namespace bitfed {

struct ZipFile {
  std::string name;
  Bytes content;
};

// The files of a ZIP archive, stored or deflated, each verified by its CRC-32. Archives in parts, encryption
// and files of more than 4 GiB are refused. `name` is for error messages.
std::vector<ZipFile> parse_zip(std::span<const uint8_t> bytes, std::string_view name);

}  // namespace bitfed
