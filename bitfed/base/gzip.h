#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// The content of a gzip file (all members), checked against its CRC. `name` is for error messages; output of
// more than `limit` bytes is an error.
Bytes gunzip(std::span<const uint8_t> compressed, std::string_view name, uint64_t limit = kMaximumFileBytes);

}  // namespace bitfed
