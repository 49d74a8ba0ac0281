#include "bitfed/data/catalog/fetch.h"

#include "bitfed/base/hash/digest.h"
#include "bitfed/base/hash/md5.h"
#include "tests/data/hand_made.h"
#include "tests/data/hand_made_tar.h"

namespace bitfed {
namespace {

using testing::HasSubstr;

TEST(Mirrored, ReplacesSchemeAndHost) {
  EXPECT_EQ(mirrored("https://a.b/c/d.gz", "http://127.0.0.1:80"), "http://127.0.0.1:80/c/d.gz");
  EXPECT_EQ(mirrored("https://a.b/c/d.gz", "http://m/sub/"), "http://m/sub/c/d.gz");
  EXPECT_EQ(mirrored("https://a.b/c", "file:///"), "file:///c");
  EXPECT_EQ(mirrored("https://a.b", "http://m"), "http://m");
}

// Fetches from file: addresses, so that no server is needed; tests/e2e has one.
class Fetch : public testing::Test {
 protected:
  void SetUp() override {
    options_.first_wait = std::chrono::milliseconds(1);
    options_.mirror = "file://" + (folder_.path() / "home").string();
    entry_.name = "tiny";
    entry_.how_to_get = "ask for it";
  }
  void offer(const std::string& name, const std::string& content) {
    folder_.write("home/" + name, content);
    entry_.downloads.push_back({"https://example.org/" + name, md5_hex(content), sha256_hex(content), name});
  }
  std::filesystem::path target() const { return folder_.path() / "target"; }
  void fetch() { fetch_dataset(entry_, target(), options_, {}); }
  std::string fetch_error() {
    try {
      fetch();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  size_t files_in_target() const {
    size_t count = 0;
    if (!std::filesystem::exists(target())) return 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(target()))
      count += file.is_regular_file();
    return count;
  }
  bool available() {
    offer("probe/x", "x");
    const bool built_without = fetch_error().find("built without") != std::string::npos;
    entry_.downloads.clear();
    std::filesystem::remove_all(target());
    return !built_without;
  }

  hand_made::Folder folder_;
  DatasetEntry entry_;
  FetchOptions options_;
};

#define NEEDS_LIBCURL() \
  if (!available()) GTEST_SKIP() << "built without libcurl"

TEST_F(Fetch, FilesArriveUnderTheirNames) {
  NEEDS_LIBCURL();
  offer("set/a.bin", "hello");
  offer("set/b.bin", std::string(100000, 'b'));
  fetch();
  EXPECT_EQ(read_text_file(target() / "set/a.bin"), "hello");
  EXPECT_EQ(read_text_file(target() / "set/b.bin"), std::string(100000, 'b'));
  EXPECT_EQ(files_in_target(), 2u);
}

TEST_F(Fetch, WhatIsThereIsLeftAlone) {
  NEEDS_LIBCURL();
  offer("a.bin", "hello");
  fetch();
  std::filesystem::remove(folder_.path() / "home/a.bin");
  fetch();
  write_file_atomically(target() / "a.bin", "damaged");
  EXPECT_THAT(fetch_error(), HasSubstr("download failed"));
}

TEST_F(Fetch, WrongSumsLeaveNothing) {
  NEEDS_LIBCURL();
  offer("a.bin", "hello");
  entry_.downloads[0].sha256.clear();
  folder_.write("home/a.bin", "hellO");
  EXPECT_THAT(fetch_error(), HasSubstr("md5 " + md5_hex("hellO") + ", expected " + md5_hex("hello")));
  EXPECT_EQ(files_in_target(), 0u);
  entry_.downloads[0].sha256 = sha256_hex("hello");
  EXPECT_THAT(fetch_error(), HasSubstr("sha256 " + sha256_hex("hellO")));
  EXPECT_EQ(files_in_target(), 0u);
}

TEST_F(Fetch, ArchivesAreUnpackedAndNotKept) {
  NEEDS_LIBCURL();
  const Bytes archive = hand_made::gzipped(hand_made::tar({hand_made::tar_member("set/a.bin", "hello")}));
  offer("set.tar.gz", std::string(archive.begin(), archive.end()));
  fetch();
  EXPECT_EQ(read_text_file(target() / "set/a.bin"), "hello");
  EXPECT_EQ(files_in_target(), 1u);
}

TEST_F(Fetch, ArchivesStayInTheFolder) {
  NEEDS_LIBCURL();
  const Bytes archive = hand_made::gzipped(hand_made::tar({hand_made::tar_member("../evil", "x")}));
  offer("set.tar.gz", std::string(archive.begin(), archive.end()));
  EXPECT_THAT(fetch_error(), HasSubstr("leads upward"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "evil"));
  EXPECT_EQ(files_in_target(), 0u);
}

TEST_F(Fetch, MissingFilesAreNotTriedAgain) {
  NEEDS_LIBCURL();
  offer("a.bin", "hello");
  std::filesystem::remove(folder_.path() / "home/a.bin");
  EXPECT_THAT(fetch_error(), HasSubstr("(attempts: 1)"));
  EXPECT_EQ(files_in_target(), 0u);
}

TEST_F(Fetch, OtherProtocolsAreRefused) {
  NEEDS_LIBCURL();
  offer("a.bin", "hello");
  options_.mirror = "ftp://127.0.0.1";
  EXPECT_THAT(fetch_error(), HasSubstr("download failed"));
}

TEST_F(Fetch, SumsAreNeeded) {
  entry_.downloads.push_back({"https://example.org/a", "", "", "a"});
  EXPECT_THAT(fetch_error(), HasSubstr("has no published checksum"));
  entry_.downloads.clear();
  EXPECT_THAT(fetch_error(), HasSubstr("cannot be fetched; ask for it"));
}

}  // namespace
}  // namespace bitfed
