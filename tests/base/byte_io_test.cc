#include "bitfed/base/byte_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "bitfed/base/gzip.h"
#include "bitfed/base/hash/random.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr Error::Kind kFailure = Error::Kind::kFailure;

// No file of this process may grow past the limit meanwhile: a full disk, without needing one.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    previous_handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit = {bytes, previous_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_handler_);
  }

 private:
  rlimit previous_;
  void (*previous_handler_)(int);
};

TEST(WriteFileAtomically, WritesAndReplaces) {
  const TemporaryFolder folder;
  for (const std::string& text : {std::string("first"), std::string(300000, 'x'), std::string()}) {
    write_file_atomically(folder / "file", text);
    EXPECT_EQ(read_text_file(folder / "file"), text);
  }
  EXPECT_EQ(folder.entries(), 1u);
}

// More parts than one call to the system takes, some of them empty.
TEST(WriteFileAtomically, WritesPartsOneAfterTheOther) {
  const TemporaryFolder folder;
  Bytes expected;
  std::vector<Bytes> parts;
  for (size_t i = 0; i < 3000; ++i) parts.emplace_back(i % 5, static_cast<uint8_t>(i));
  for (const Bytes& part : parts) expected.insert(expected.end(), part.begin(), part.end());
  write_file_atomically(folder / "file", ByteParts(parts.begin(), parts.end()));
  EXPECT_EQ(read_file(folder / "file"), expected);
}

TEST(RemoveHalfWritten, RemovesPartsAndNothingElse) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "inner");
  fs::create_directory(folder / "folder.part7");
  for (const char* name :
       {"a.json.part123", "inner/b.part4", "a.json", "c.part", "d.part1x", "inner/e.parts"}) {
    write_file_atomically(folder / name, "x");
  }
  remove_half_written(folder.path());
  EXPECT_EQ(folder.entries(), 5u);
  EXPECT_FALSE(fs::exists(folder / "a.json.part123"));
  EXPECT_FALSE(fs::exists(folder / "inner/b.part4"));
  EXPECT_TRUE(fs::exists(folder / "inner/e.parts"));
  remove_half_written(folder / "missing");
}

TEST(WriteFileAtomically, MissingFolderIsAFailure) {
  const TemporaryFolder folder;
  const fs::path path = folder / "missing/file";
  const std::string text = error_text([&] { write_file_atomically(path, "text"); }, kFailure);
  EXPECT_THAT(text, HasSubstr(path.string() + ": cannot be written: No such file or directory"));
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(WriteFileAtomically, FullDiskKeepsTheOldFile) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "old");
  {
    const FileSizeLimit limit(4096);
    const auto write = [&] { write_file_atomically(folder / "file", std::string(100000, 'x')); };
    EXPECT_THAT(error_text(write, kFailure), HasSubstr("file: cannot be written: "));
  }
  EXPECT_EQ(read_text_file(folder / "file"), "old");
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(WriteFileAtomically, FolderInTheWayStays) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "taken");
  const auto write = [&] { write_file_atomically(folder / "taken", "text"); };
  EXPECT_THAT(error_text(write, kFailure), HasSubstr("taken: cannot be written: "));
  EXPECT_TRUE(fs::is_directory(folder / "taken"));
  EXPECT_EQ(folder.entries(), 1u);
}

// A rename would put a plain file in the place of a device or a pipe.
TEST(WriteFileAtomically, DevicesAndPipesAreNotReplaced) {
  const TemporaryFolder folder;
  fs::create_symlink("/dev/null", folder / "link");
  const auto write = [&] { write_file_atomically(folder / "link", "text"); };
  EXPECT_THAT(error_text(write, kFailure), HasSubstr("link: cannot be written: not a regular file"));
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(ReadFile, MissingFileAndFolder) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { read_file(folder / "none"); }),
              HasSubstr((folder / "none").string() + ": cannot be read: No such file or directory"));
  EXPECT_THAT(error_text([&] { read_file(folder.path()); }), HasSubstr("is a folder"));
}

TEST(ReadFile, HugeFileIsRefusedUnread) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "huge", "");
  fs::resize_file(folder / "huge", kMaximumFileBytes + 1);  // takes no space
  EXPECT_THAT(error_text([&] { read_file(folder / "huge"); }), HasSubstr("expected at most 4294967296"));
}

TEST(CreateFolders, MakesAllAndAcceptsExisting) {
  const TemporaryFolder folder;
  create_folders(folder / "a/b/c");
  create_folders(folder / "a/b/c");
  create_folders(folder / "a/b/d/");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  EXPECT_TRUE(fs::is_directory(folder / "a/b/d"));
}

TEST(CreateFolders, FileInTheWayIsAFailure) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "text");
  for (const char* name : {"file", "file/a/b"}) {
    EXPECT_THAT(error_text([&] { create_folders(folder / name); }, kFailure),
                HasSubstr((folder / name).string() + ": the folder cannot be created"));
  }
}

Bytes gzip(const Bytes& content) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  Bytes packed(deflateBound(&stream, content.size()) + 32);
  stream.next_in = const_cast<Bytef*>(content.data());
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Bytes random_bytes(size_t count) {
  RandomStream random({.seed = count, .purpose = "byte io test"});
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  return bytes;
}

TEST(Gunzip, UnpacksEverySize) {
  for (const size_t size : {0, 1, 65535, 65536, 65537, 131072, 1000000}) {
    EXPECT_EQ(gunzip(gzip(random_bytes(size)), "test"), random_bytes(size));
    EXPECT_EQ(gunzip(gzip(Bytes(size, 7)), "test"), Bytes(size, 7));
  }
}

TEST(Gunzip, UnpacksAllMembers) {
  Bytes packed;
  Bytes expected;
  for (const size_t size : {10, 0, 70000, 1, 65536, 0}) {
    const Bytes content = random_bytes(size);
    const Bytes member = gzip(content);
    packed.insert(packed.end(), member.begin(), member.end());
    expected.insert(expected.end(), content.begin(), content.end());
  }
  EXPECT_EQ(gunzip(packed, "test"), expected);
}

TEST(Gunzip, TruncatedAtEveryLength) {
  for (const Bytes& content : {random_bytes(500), Bytes(3000, 7)}) {
    const Bytes packed = gzip(content);
    for (size_t size = 0; size < packed.size(); ++size) {
      const Bytes part(packed.begin(), packed.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_THAT(error_text([&] { gunzip(part, "file.gz"); }),
                  HasSubstr("file.gz: the gzip data ends early"))
          << size << " of " << packed.size() << " bytes";
    }
  }
}

TEST(Gunzip, WrongChecksumOrLength) {
  const Bytes packed = gzip(random_bytes(500));
  for (size_t from_end = 1; from_end <= 8; ++from_end) {
    Bytes damaged = packed;
    damaged[packed.size() - from_end] ^= 1;
    EXPECT_THAT(error_text([&] { gunzip(damaged, "file.gz"); }), HasSubstr("file.gz: not valid gzip data"));
  }
}

// A changed bit may sit in a field without meaning (time, operating system); it must never go further.
TEST(Gunzip, AnyFlippedBitIsFoundOrHarmless) {
  const Bytes content = random_bytes(100);
  const Bytes packed = gzip(content);
  for (size_t bit = 0; bit < 8 * packed.size(); ++bit) {
    Bytes damaged = packed;
    damaged[bit / 8] = static_cast<uint8_t>(damaged[bit / 8] ^ 1u << (bit % 8));
    const std::string text = error_text([&] { EXPECT_EQ(gunzip(damaged, "file.gz"), content); });
    EXPECT_TRUE(text.empty() || text.starts_with("file.gz: ")) << text;
  }
}

TEST(Gunzip, OtherContent) {
  const Bytes text = {'n', 'o', ' ', 'g', 'z', 'i', 'p'};
  EXPECT_THAT(error_text([&] { gunzip(text, "file.gz"); }), HasSubstr("file.gz: not valid gzip data"));
  Bytes trailing = gzip(random_bytes(10));
  trailing.insert(trailing.end(), text.begin(), text.end());
  EXPECT_THAT(error_text([&] { gunzip(trailing, "file.gz"); }), HasSubstr("file.gz: not valid gzip data"));
}

TEST(Gunzip, Limit) {
  const Bytes packed = gzip(Bytes(100000, 7));
  EXPECT_EQ(gunzip(packed, "file.gz", 100000).size(), 100000u);
  for (const uint64_t limit : {1, 65536, 99999}) {
    EXPECT_EQ(error_text([&] { gunzip(packed, "file.gz", limit); }),
              "file.gz: unpacks to more than " + std::to_string(limit) + " bytes");
  }
}

TEST(ByteReader, ReadsInOrder) {
  Bytes bytes(20);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(0xf0 + i);
  ByteReader reader(bytes, "test");
  EXPECT_EQ(reader.u8(), 0xf0);
  EXPECT_EQ(reader.u16_le(), 0xf2f1);
  EXPECT_EQ(reader.u32_le(), 0xf6f5f4f3u);
  EXPECT_EQ(reader.u64_le(), 0xfefdfcfbfaf9f8f7u);
  EXPECT_EQ(reader.u32_be(), 0xff000102u);
  EXPECT_EQ(reader.offset(), 19u);
  EXPECT_EQ(reader.left(), 1u);
  EXPECT_EQ(reader.take(1)[0], 0x03);
  EXPECT_TRUE(reader.take(0).empty());
}

TEST(ByteReader, RunningOutNamesSourceAndOffset) {
  const Bytes bytes(7);
  ByteReader reader(bytes, "model.bin");
  reader.u32_le();
  EXPECT_EQ(error_text([&] { reader.u32_be(); }),
            "model.bin: ends early: 4 bytes expected at offset 4, 3 left");
  EXPECT_EQ(reader.offset(), 4u);
  EXPECT_THAT(error_text([&] { reader.take(SIZE_MAX); }), HasSubstr("ends early"));  // no wrap-around
  EXPECT_EQ(reader.take(3).size(), 3u);
  EXPECT_THAT(error_text([&] { reader.u8(); }), HasSubstr("offset 7, 0 left"));
}

}  // namespace
}  // namespace bitfed
