#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// The content of one zlib stream, verified by its checksum. The stream must fill `packed` (below 4 GiB) to
// its end. Memory grows with the output that was produced so far; more than `limit` bytes are an input_error
// with `name`. `claimed`: what the first bytes claim to be the size of all; room is reserved for that at
// once, so that a large content is not copied as it grows.
Bytes unzlib(std::span<const uint8_t> packed, std::string_view name, uint64_t limit,
             uint64_t (*claimed)(std::span<const uint8_t> first) = nullptr);

}  // namespace bitfed
