#include "bitfed/data/formats/tar.h"

#include <algorithm>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr size_t kBlock = 512;
constexpr size_t kMaximumFiles = 100'000;

// Fields of a header: where they start and how long they are (POSIX.1-1988).
struct Field {
  size_t start;
  size_t length;
};
constexpr Field kName = {0, 100};
constexpr Field kSize = {124, 12};
constexpr Field kChecksum = {148, 8};
constexpr size_t kType = 156;
constexpr Field kMagic = {257, 5};
constexpr Field kPrefix = {345, 155};

using Block = std::span<const uint8_t>;

std::string_view text(Block block, Field field) {
  const auto* start = reinterpret_cast<const char*>(block.data()) + field.start;
  const std::string_view whole(start, field.length);
  return whole.substr(0, std::min(whole.find('\0'), whole.size()));
}

// Octal digits between spaces. Eleven of them stay far below 64 bits.
uint64_t octal(Block block, Field field, std::string_view what, std::string_view name) {
  std::string_view digits = text(block, field);
  while (digits.starts_with(' ')) digits.remove_prefix(1);
  while (digits.ends_with(' ')) digits.remove_suffix(1);
  uint64_t value = 0;
  for (const char digit : digits) {
    if (digit < '0' || digit > '7') throw input_error("{}: {} is not an octal number", name, what);
    value = value * 8 + static_cast<uint64_t>(digit - '0');
  }
  if (digits.empty()) throw input_error("{}: {} is empty, expected an octal number", name, what);
  return value;
}

void check_header(Block block, std::string_view name) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum.start && i < kChecksum.start + kChecksum.length;
    sum += own ? uint64_t{' '} : block[i];
  }
  if (octal(block, kChecksum, "a header's checksum", name) != sum) {
    throw input_error("{}: a header's checksum is wrong: not a tar archive, or damaged", name);
  }
  if (text(block, kMagic) != "ustar") throw input_error("{}: not a ustar archive", name);
}

// GNU's form ("ustar" and two spaces) keeps times where POSIX has the prefix.
std::string member_path(Block block) {
  const bool posix = block[kMagic.start + 5] == '\0';
  const std::string_view prefix = posix ? text(block, kPrefix) : std::string_view();
  std::string path(prefix);
  if (!path.empty()) path += '/';
  path += text(block, kName);
  while (path.starts_with("./")) path.erase(0, 2);
  return path;
}

void check_path(const std::string& path, std::string_view name) {
  const auto bad = [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\\'; };
  if (path.empty() || path.ends_with('/') || std::any_of(path.begin(), path.end(), bad)) {
    throw input_error("{}: holds a file named {:?}, expected a plain relative path", name, path);
  }
  if (path.starts_with('/')) throw input_error("{}: holds the absolute path {}", name, path);
  for (size_t start = 0; start <= path.size();) {
    const size_t end = std::min(path.find('/', start), path.size());
    if (path.compare(start, end - start, "..") == 0)
      throw input_error("{}: holds {}, which leads upward", name, path);
    start = end + 1;
  }
}

// Extended headers that only hold times and owners are skipped; one that renames or resizes the next file is
// not supported.
void check_extended_header(Block bytes, std::string_view name) {
  const std::string_view records(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const std::string_view key : {"path=", "size=", "GNU.sparse"}) {
    if (records.find(key) != std::string_view::npos) {
      throw input_error("{}: holds an extended header with {:?}, which is not supported", name, key);
    }
  }
}

bool is_zero(Block block) {
  return std::all_of(block.begin(), block.end(), [](uint8_t byte) { return byte == 0; });
}

}  // namespace

std::vector<TarFile> parse_tar(std::span<const uint8_t> bytes, std::string_view name) {
  ByteReader reader(bytes, name);
  std::vector<TarFile> files;
  for (;;) {
    const Block block = reader.take(kBlock);
    if (is_zero(block)) return files;  // two such blocks mark the end; one is enough here
    check_header(block, name);
    const uint64_t size = octal(block, kSize, "a file's size", name);
    const char type = static_cast<char>(block[kType]);
    const bool is_folder = type == '5';
    if (is_folder && size != 0) throw input_error("{}: holds a folder of {} bytes", name, size);
    const Block content = reader.take(size);
    reader.take((kBlock - size % kBlock) % kBlock);
    if (is_folder) continue;
    if (type == 'x' || type == 'g') {
      check_extended_header(content, name);
      continue;
    }
    const std::string path = member_path(block);
    if (type != '0' && type != '\0') {
      throw input_error("{}: {:?} is of type {:?}, expected regular files and folders", name, path, type);
    }
    check_path(path, name);
    if (files.size() == kMaximumFiles) throw input_error("{}: holds more than {} files", name, kMaximumFiles);
    files.push_back({path, content});
  }
}

}  // namespace bitfed
