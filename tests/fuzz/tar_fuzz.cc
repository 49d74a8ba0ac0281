#include <filesystem>

#include "bitfed/base/error.h"
#include "bitfed/data/formats/tar.h"

// Fuzzed headers never have the right checksum, so it is put right here for every whole block.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  for (size_t start = 0; start + 512 <= bytes.size(); start += 512) {
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? 0u : bytes[start + i];
    if (sum == 8 * ' ') continue;
    for (size_t digit = 0; digit < 6; ++digit) {
      bytes[start + 153 - digit] = static_cast<uint8_t>('0' + (sum >> (3 * digit) & 7));
    }
    bytes[start + 154] = 0;
    bytes[start + 155] = ' ';
  }
  try {
    for (const bitfed::TarFile& file : bitfed::parse_tar(bytes, "fuzz")) {
      const std::filesystem::path path = std::filesystem::path("/base") / file.path;
      if (!path.lexically_normal().string().starts_with("/base/")) __builtin_trap();
    }
  } catch (const bitfed::Error&) {
  }
  return 0;
}
