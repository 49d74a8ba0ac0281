#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace bitfed {

// MD5 (RFC 1321), updated in pieces. Only for comparing a download with the checksum that its publisher
// gives: it detects accidents, not attacks. Use SHA-256 for everything else.
class Md5 {
 public:
  Md5& update(std::span<const uint8_t> bytes);
  Md5& update(std::string_view text);
  std::string hex();  // ends the message

 private:
  void compress(const uint8_t* block);

  std::array<uint32_t, 4> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::array<uint8_t, 64> pending_{};
  uint64_t length_ = 0;
};

std::string md5_hex(std::string_view text);

}  // namespace bitfed
