#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <new>
#include <span>

#include "bitfed/base/byte_io.h"

namespace bitfed {

// Files past the system's page cache: for what is written once and read once. A copy of it in memory costs as
// much as reading it from a fast disk, and in a virtual machine more. Not every file system can.

// Memory that such reads and writes accept: it begins at a block.
class BlockBuffer {
 public:
  static constexpr size_t kBlock = 4096;

  explicit BlockBuffer(size_t size)
      : bytes_(static_cast<uint8_t*>(::operator new(size, kAlign))), size_(size) {}

  uint8_t* data() { return bytes_.get(); }
  size_t size() const { return size_; }

 private:
  static constexpr std::align_val_t kAlign{kBlock};
  struct Free {
    void operator()(uint8_t* bytes) const { ::operator delete(bytes, kAlign); }
  };
  std::unique_ptr<uint8_t, Free> bytes_;
  size_t size_;
};

// Whether reads and writes of the open file go past the page cache from now on. False: they cannot.
bool set_direct(int descriptor, bool direct);

// write_file_atomically, past the page cache. Where the file system cannot, through it.
void write_file_directly(const std::filesystem::path& path, const ByteParts& parts);

// A part of a file, past the page cache or through it. False: it cannot be read.
bool read_directly(const std::filesystem::path& file, uint64_t offset, std::span<uint8_t> bytes);
bool read_cached(const std::filesystem::path& file, uint64_t offset, std::span<uint8_t> bytes);

}  // namespace bitfed
