#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// The versions of the protocol that this build speaks.
inline constexpr uint32_t kLeastProtocol = 1;
inline constexpr uint32_t kMostProtocol = 1;

inline constexpr size_t kChunkBytes = size_t{128} << 10;
// No single message is larger; whatever may be is cut into chunks.
inline constexpr size_t kMostMessageBytes = size_t{1} << 20;
inline constexpr size_t kMostNameBytes = 64;

// The highest version that both sides speak, if there is one.
std::optional<uint32_t> common_protocol(uint32_t least, uint32_t most);

// Bytes that come in chunks and must be what was announced.
class Incoming {
 public:
  // An input_error where the size is above `limit` or the digest is none.
  Incoming(uint64_t size, std::string sha256, uint64_t limit);

  // An input_error where there are more than announced. True: this was the last.
  bool add(std::string_view chunk);
  uint64_t size() const { return size_; }
  // The whole; an input_error where it is not what its digest says.
  Bytes take();

 private:
  uint64_t size_;
  std::string sha256_;
  Bytes bytes_;
};

}  // namespace bitfed
