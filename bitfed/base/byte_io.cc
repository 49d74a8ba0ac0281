#include "bitfed/base/byte_io.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

// Unfinished files are called NAME.partPID.
constexpr std::string_view kPart = ".part";

constexpr size_t kPartsPerCall = 1024;  // what Linux allows

// Closes the descriptor and removes the file unless it was renamed to its final name.
class PartialFile {
 public:
  explicit PartialFile(const fs::path& final_name)
      : final_name_(final_name), path_(final_name.string() + fmt::format("{}{}", kPart, getpid())) {
    // A rename would put a file in the place of a device or pipe, such as /dev/stdout.
    std::error_code code;
    const fs::file_status status = fs::status(final_name_, code);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      throw failure("{}: cannot be written: not a regular file", final_name_.string());
    }
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor_ < 0)
      throw failure("{}: cannot be written: {}", final_name_.string(), std::strerror(errno));
  }
  ~PartialFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!finished_) unlink(path_.c_str());
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void write(const ByteParts& parts) {
    std::vector<iovec> left;
    for (const auto part : parts) {
      if (!part.empty()) left.push_back({const_cast<uint8_t*>(part.data()), part.size()});
    }
    for (size_t next = 0; next < left.size();) {
      const size_t count = std::min(left.size() - next, kPartsPerCall);
      const ssize_t written = ::writev(descriptor_, &left[next], static_cast<int>(count));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail();
      auto bytes = static_cast<size_t>(written);
      for (; next < left.size() && bytes >= left[next].iov_len; ++next) bytes -= left[next].iov_len;
      if (bytes == 0) continue;
      left[next].iov_base = static_cast<uint8_t*>(left[next].iov_base) + bytes;
      left[next].iov_len -= bytes;
    }
  }

  void finish() {
    if (fsync(descriptor_) != 0) fail();
    const int descriptor = std::exchange(descriptor_, -1);
    if (close(descriptor) != 0) fail();
    if (rename(path_.c_str(), final_name_.c_str()) != 0) fail();
    finished_ = true;
    // The rename itself is durable once the folder is.
    const fs::path folder = final_name_.has_parent_path() ? final_name_.parent_path() : fs::path(".");
    const int handle = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (handle >= 0) {
      fsync(handle);
      close(handle);
    }
  }

 private:
  [[noreturn]] void fail() const {
    throw failure("{}: cannot be written: {}", final_name_.string(), std::strerror(errno));
  }

  fs::path final_name_;
  fs::path path_;
  int descriptor_ = -1;
  bool finished_ = false;
};

}  // namespace

// Only names that end in .part and digits, so that no user's file is removed.
void remove_half_written(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    const size_t at = name.rfind(kPart);
    if (at == std::string::npos || at + kPart.size() == name.size()) continue;
    if (name.find_first_not_of("0123456789", at + kPart.size()) != std::string::npos) continue;
    if (entry.is_regular_file(code)) found.push_back(entry.path());
  }
  for (const fs::path& path : found) fs::remove(path, code);
}

Bytes read_file(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::status(path, code);
  if (fs::is_directory(status)) throw input_error("{}: is a folder, expected a file", path.string());
  // A pipe without a writer would be waited for.
  if (fs::is_other(status)) throw input_error("{}: is a pipe or a device, expected a file", path.string());
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw input_error("{}: cannot be read: {}", path.string(), std::strerror(errno));
  const std::streamoff size = file.tellg();
  if (size < 0) throw input_error("{}: cannot be read", path.string());
  if (static_cast<uint64_t>(size) > kMaximumFileBytes) {
    throw input_error("{}: {} bytes, expected at most {}", path.string(), size, kMaximumFileBytes);
  }
  Bytes bytes(static_cast<size_t>(size));
  file.seekg(0);
  if (!bytes.empty() && !file.read(reinterpret_cast<char*>(bytes.data()), size)) {
    throw failure("{}: reading failed after {} of {} bytes", path.string(), file.gcount(), size);
  }
  return bytes;
}

std::string read_text_file(const fs::path& path) {
  const Bytes bytes = read_file(path);
  return {bytes.begin(), bytes.end()};
}

void write_file_atomically(const fs::path& path, const ByteParts& parts) {
  PartialFile file(path);
  file.write(parts);
  file.finish();
}

void write_file_atomically(const fs::path& path, std::span<const uint8_t> bytes) {
  write_file_atomically(path, ByteParts{bytes});
}

void write_file_atomically(const fs::path& path, std::string_view text) {
  write_file_atomically(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void create_folders(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) throw failure("{}: the folder cannot be created: {}", path.string(), code.message());
}

std::span<const uint8_t> ByteReader::take(size_t count) {
  if (count > left()) {
    throw input_error("{}: ends early: {} bytes expected at offset {}, {} left", name_, count, offset_,
                      left());
  }
  const auto taken = bytes_.subspan(offset_, count);
  offset_ += count;
  return taken;
}

uint16_t ByteReader::u16_le() {
  const auto b = take(2);
  return static_cast<uint16_t>(b[0] | b[1] << 8);
}

uint32_t ByteReader::u32_le() {
  const auto b = take(4);
  return uint32_t{b[0]} | uint32_t{b[1]} << 8 | uint32_t{b[2]} << 16 | uint32_t{b[3]} << 24;
}

uint64_t ByteReader::u64_le() {
  const uint64_t low = u32_le();
  return low | uint64_t{u32_le()} << 32;
}

uint32_t ByteReader::u32_be() {
  const auto b = take(4);
  return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | uint32_t{b[3]};
}

}  // namespace bitfed
