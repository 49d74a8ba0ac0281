#include "bitfed/data/formats/tar.h"

#include "tests/data/hand_made.h"
#include "tests/data/hand_made_tar.h"

namespace bitfed {
namespace {

using hand_made::input_error_of;
using hand_made::tar;
using hand_made::tar_member;
using testing::HasSubstr;

std::string error(const Bytes& bytes) {
  return input_error_of([&] { parse_tar(bytes, "f.tar"); });
}

TEST(Tar, RegularFilesAreFoundFoldersLeftOut) {
  const Bytes bytes = tar({tar_member("d/", "", '5'), tar_member("d/a.bin", "hello"),
                           tar_member("./b", std::string(513, 'x')), tar_member("empty", "", '\0')});
  const auto files = parse_tar(bytes, "f.tar");
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].path, "d/a.bin");
  EXPECT_EQ(std::string(files[0].bytes.begin(), files[0].bytes.end()), "hello");
  EXPECT_EQ(files[1].path, "b");
  EXPECT_EQ(files[1].bytes.size(), 513u);
  EXPECT_EQ(files[2].bytes.size(), 0u);
}

TEST(Tar, PrefixComesFirst) {
  Bytes member = tar_member("name", "x");
  std::memcpy(member.data() + 345, "a/b", 3);
  hand_made::fix_tar_checksum(member);
  EXPECT_EQ(parse_tar(tar({member}), "f.tar")[0].path, "a/b/name");
  std::memcpy(member.data() + 345, "..", 3);
  hand_made::fix_tar_checksum(member);
  EXPECT_THAT(error(tar({member})), HasSubstr("leads upward"));
}

TEST(Tar, DangerousPathsAreRefused) {
  EXPECT_THAT(error(tar({tar_member("/etc/passwd", "x")})), HasSubstr("absolute path /etc/passwd"));
  for (const char* path : {"..", "../x", "a/../../x", "a/..", "./../x"}) {
    EXPECT_THAT(error(tar({tar_member(path, "x")})), HasSubstr("leads upward")) << path;
  }
  for (const char* path : {"", "a/", "a\\b", "a\nb", "./"}) {
    EXPECT_THAT(error(tar({tar_member(path, "x")})), HasSubstr("expected a plain relative path")) << path;
  }
  EXPECT_EQ(parse_tar(tar({tar_member("a..b/..c", "x")}), "f.tar").size(), 1u);
}

TEST(Tar, LinksAndDevicesAreRefused) {
  for (const char type : {'1', '2', '3', '4', '6', '7', 'L', 'S'}) {
    EXPECT_THAT(error(tar({tar_member("a", "", type)})), HasSubstr("expected regular files and folders"))
        << type;
  }
}

TEST(Tar, ExtendedHeadersOnlyWhereHarmless) {
  EXPECT_EQ(
      parse_tar(tar({tar_member("p", "18 mtime=123456.7\n", 'x'), tar_member("a", "x")}), "f.tar").size(),
      1u);
  EXPECT_THAT(error(tar({tar_member("p", "16 path=../evil\n", 'x'), tar_member("a", "x")})),
              HasSubstr("not supported"));
}

TEST(Tar, DamageIsFound) {
  Bytes member = tar_member("a", "hello");
  member[0] = 'b';
  EXPECT_THAT(error(tar({member})), HasSubstr("checksum is wrong"));
  member = tar_member("a", "hello");
  member[257] = 'x';
  hand_made::fix_tar_checksum(member);
  EXPECT_THAT(error(tar({member})), HasSubstr("not a ustar archive"));
  member = tar_member("a", "hello");
  std::memcpy(member.data() + 124, "77777777777", 11);
  hand_made::fix_tar_checksum(member);
  EXPECT_THAT(error(tar({member})), HasSubstr("ends early"));
  member[124] = '9';
  hand_made::fix_tar_checksum(member);
  EXPECT_THAT(error(tar({member})), HasSubstr("size is not an octal number"));
}

TEST(Tar, EveryTruncationBeforeTheEndMarkIsAnError) {
  const Bytes whole = tar({tar_member("a", "hello"), tar_member("b", "you")});
  for (size_t size = 0; size < whole.size() - 512; ++size) {
    EXPECT_THAT(error(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size))),
                HasSubstr("ends early"));
  }
}

}  // namespace
}  // namespace bitfed
