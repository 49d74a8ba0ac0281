#include "bitfed/base/direct_io.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

namespace bitfed {
namespace {

// Reads from the offset until the buffer is full or no more can be read. Empty: an error.
std::optional<size_t> read_at(int descriptor, uint64_t offset, std::span<uint8_t> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::pread(descriptor, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && done == 0) return std::nullopt;
    if (count <= 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

// By whole blocks, into this thread's buffer.
bool read_blocks(int descriptor, uint64_t offset, std::span<uint8_t> bytes) {
  constexpr size_t kBlock = BlockBuffer::kBlock;
  const size_t before = offset % kBlock;
  const size_t needed = (before + bytes.size() + kBlock - 1) / kBlock * kBlock;
  thread_local std::optional<BlockBuffer> buffer;
  if (!buffer || buffer->size() < needed) buffer.emplace(needed);
  // At the file's end the last block is cut short, and a read from there would not begin at a block.
  const auto count = read_at(descriptor, offset - before, {buffer->data(), needed});
  if (count.value_or(0) < before + bytes.size()) return false;
  std::memcpy(bytes.data(), buffer->data() + before, bytes.size());
  return true;
}

struct Descriptor {
  explicit Descriptor(const std::filesystem::path& file)
      : descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Descriptor() {
    if (descriptor >= 0) ::close(descriptor);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  const int descriptor;
};

}  // namespace

bool set_direct(int descriptor, bool direct) {
#ifdef O_DIRECT
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && ::fcntl(descriptor, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
#else
  return !direct && descriptor >= 0;
#endif
}

bool read_directly(const std::filesystem::path& file, uint64_t offset, std::span<uint8_t> bytes) {
  const Descriptor open(file);
  // A file system that takes the flag may still refuse this offset or size.
  return (set_direct(open.descriptor, true) && read_blocks(open.descriptor, offset, bytes)) ||
         (set_direct(open.descriptor, false) && read_at(open.descriptor, offset, bytes) == bytes.size());
}

bool read_cached(const std::filesystem::path& file, uint64_t offset, std::span<uint8_t> bytes) {
  const Descriptor open(file);
  return open.descriptor >= 0 && read_at(open.descriptor, offset, bytes) == bytes.size();
}

}  // namespace bitfed
