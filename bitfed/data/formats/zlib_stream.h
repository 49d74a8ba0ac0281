#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// The content of one zlib stream, checked against its sum. The stream must fill `packed` (below 4 GiB) to
// its end. Memory grows with what is really unpacked; growing past `limit` bytes is an input_error that
// names `name`.
Bytes unzlib(std::span<const uint8_t> packed, std::string_view name, uint64_t limit);

}  // namespace bitfed
