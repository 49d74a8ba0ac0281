#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitfed {

using Bytes = std::vector<uint8_t>;

// Larger files are refused before they are read. No data set or model comes near this size.
inline constexpr uint64_t kMaximumFileBytes = uint64_t{4} << 30;

Bytes read_file(const std::filesystem::path& path);
std::string read_text_file(const std::filesystem::path& path);

// Writes to a temporary name in the same folder, syncs, then renames: a reader sees the old file or the new
// one, never a part. On failure the partial file is removed and an error thrown.
void write_file_atomically(const std::filesystem::path& path, std::span<const uint8_t> bytes);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);
// The parts one after the other, from where they are.
using ByteParts = std::vector<std::span<const uint8_t>>;
void write_file_atomically(const std::filesystem::path& path, const ByteParts& parts);

// Removes partial files that a killed process left in the folder or below it. Only to be called where no
// other process can be writing.
void remove_half_written(const std::filesystem::path& folder);

// Creates the folder and its parents.
void create_folders(const std::filesystem::path& path);

// Reads untrusted bytes, front to back. Every read is checked; running out of bytes is an input_error that
// names the source and the offset.
class ByteReader {
 public:
  ByteReader(std::span<const uint8_t> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  size_t offset() const { return offset_; }
  size_t left() const { return bytes_.size() - offset_; }
  std::span<const uint8_t> take(size_t count);
  uint8_t u8() { return take(1)[0]; }
  uint16_t u16_le();
  uint32_t u32_le();
  uint64_t u64_le();
  uint32_t u32_be();

 private:
  std::span<const uint8_t> bytes_;
  std::string name_;
  size_t offset_ = 0;
};

}  // namespace bitfed
