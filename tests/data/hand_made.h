#pragma once

// Files of the formats that the loaders read, made by hand: for the tests of the loaders.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <unistd.h>
#include <cstring>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"

namespace bitfed::hand_made {

inline void append(Bytes& bytes, std::span<const uint8_t> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}
inline void append(Bytes& bytes, std::string_view text) {
  bytes.insert(bytes.end(), text.begin(), text.end());
}

inline void append_be32(Bytes& bytes, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(value >> shift));
}

inline void append_le32(Bytes& bytes, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(value >> shift));
}

// window_bits: 31 makes gzip, 15 zlib.
inline Bytes deflated(std::span<const uint8_t> bytes, int window_bits) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes packed(deflateBound(&stream, static_cast<uLong>(bytes.size())) + 64);
  stream.next_in = const_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.erase(packed.end() - stream.avail_out, packed.end());
  deflateEnd(&stream);
  return packed;
}
inline Bytes gzipped(std::span<const uint8_t> bytes) {
  return deflated(bytes, 31);
}
inline Bytes zlibbed(std::span<const uint8_t> bytes) {
  return deflated(bytes, 15);
}

// The text of the input_error that `action` must throw: one line.
inline std::string input_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kInput) << error.what();
    EXPECT_EQ(std::strchr(error.what(), '\n'), nullptr) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an input_error";
  return "";
}

// A folder of its own for each test, gone at its end.
class Folder {
 public:
  Folder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() / ("bitfed_" + std::string(test->test_suite_name()) + "_" +
                                                      test->name() + "_" + std::to_string(getpid()));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code code;
    std::filesystem::remove_all(path_, code);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, std::span<const uint8_t> bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    write_file_atomically(path_ / name, bytes);
  }
  void write(const std::string& name, std::string_view text) const {
    write(name, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }

 private:
  std::filesystem::path path_;
};

}  // namespace bitfed::hand_made
