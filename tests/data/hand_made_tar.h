#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "bitfed/base/byte_io.h"

namespace bitfed::hand_made {

inline void fix_tar_checksum(Bytes& member) {
  std::memset(member.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += member[i];
  std::snprintf(reinterpret_cast<char*>(member.data()) + 148, 8, "%06o", sum);
}

// A header block and the content, padded to whole blocks.
inline Bytes tar_member(const std::string& path, const std::string& content, char type = '0') {
  Bytes member(512 + (content.size() + 511) / 512 * 512);
  std::memcpy(member.data(), path.data(), path.size());
  std::snprintf(reinterpret_cast<char*>(member.data()) + 124, 12, "%011zo", content.size());
  member[156] = static_cast<uint8_t>(type);
  std::memcpy(member.data() + 257, "ustar\00000", 8);
  std::memcpy(member.data() + 512, content.data(), content.size());
  fix_tar_checksum(member);
  return member;
}

inline Bytes tar(const std::vector<Bytes>& members) {
  Bytes bytes;
  for (const Bytes& member : members) bytes.insert(bytes.end(), member.begin(), member.end());
  bytes.resize(bytes.size() + 1024);
  return bytes;
}

}  // namespace bitfed::hand_made
