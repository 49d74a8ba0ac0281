#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// The versions of the protocol that this build speaks.
inline constexpr uint32_t kMinProtocol = 1;
inline constexpr uint32_t kMaxProtocol = 1;
inline constexpr uint32_t kMaskProtocol = 3;  // of secure aggregation

inline constexpr size_t kChunkBytes = size_t{128} << 10;
// No single message is larger; whatever may be is cut into chunks.
inline constexpr size_t kMaxMessageBytes = size_t{1} << 20;
// An update of at most so many bytes comes with its offer.
inline constexpr size_t kMaxUpdateInOffer = size_t{64} << 10;
inline constexpr size_t kMaxNameBytes = 64;

// The highest version that both sides speak, if there is one.
std::optional<uint32_t> common_protocol(uint32_t least, uint32_t most);

// A string from a peer, fit for a log and a terminal: at most `max` bytes, cut between two characters;
// control characters and bytes that are not UTF-8 become '?'.
std::string printable(std::string_view text, size_t max);

// Bytes that come in chunks and must be what was announced.
class Incoming {
 public:
  // An input_error where the size is above `limit` or the digest is none.
  Incoming(uint64_t size, std::string sha256, uint64_t limit);

  // An input_error where there are more than announced. True: this was the last.
  bool add(std::string_view chunk);
  uint64_t size() const { return size_; }
  // The whole; an input_error where it does not match its digest.
  Bytes take();

 private:
  uint64_t size_;
  std::string sha256_;
  Bytes bytes_;
};

}  // namespace bitfed
