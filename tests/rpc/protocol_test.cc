#include "bitfed/rpc/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/hash/digest.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CommonProtocol, TheHighestOfBoth) {
  EXPECT_EQ(common_protocol(1, 1), 1u);
  EXPECT_EQ(common_protocol(0, 9), kMaxProtocol);
  EXPECT_EQ(common_protocol(0, 0), std::nullopt);
  EXPECT_EQ(common_protocol(kMaxProtocol + 1, kMaxProtocol + 5), std::nullopt);
  EXPECT_EQ(common_protocol(3, 1), std::nullopt);
}

TEST(Incoming, PutsChunksTogether) {
  Incoming incoming(3, sha256_hex(std::string_view("abc")), 10);
  EXPECT_FALSE(incoming.add("a"));
  EXPECT_TRUE(incoming.add("bc"));
  EXPECT_THAT(incoming.take(), ElementsAre('a', 'b', 'c'));
}

TEST(Incoming, RefusesWhatWasNotAnnounced) {
  const std::string digest = sha256_hex(std::string_view("abc"));
  EXPECT_THAT(error_text([&] { Incoming(11, digest, 10); }),
              HasSubstr("found 11 bytes announced, expected 1 to 10"));
  EXPECT_THAT(error_text([&] { Incoming(0, digest, 10); }), HasSubstr("found 0 bytes"));
  EXPECT_THAT(error_text([&] { Incoming(3, "abc", 10); }), HasSubstr("not SHA-256"));
  Incoming longer(3, digest, 10);
  EXPECT_THAT(error_text([&] { longer.add("abcd"); }), HasSubstr("found 4 bytes more after 0 of the 3"));
  EXPECT_THAT(error_text([&] { longer.add(""); }), HasSubstr("found 0 bytes more"));
  Incoming other(3, digest, 10);
  EXPECT_TRUE(other.add("abd"));
  EXPECT_THAT(error_text([&] { other.take(); }), HasSubstr("expected " + digest));
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("na\u00efve", 99), "na\u00efve");
  EXPECT_EQ(printable("na\u00efve", 3), "na");
  EXPECT_EQ(printable("na\u00efve", 4), "na\u00ef");
  EXPECT_EQ(printable("\U0001f600", 3), "");
}

TEST(Printable, ReplacesWhatALogCannotHold) {
  EXPECT_EQ(printable("a\x1b[2J\nb\x7f", 99), "a?[2J?b?");
  EXPECT_EQ(printable("\xc2\x9b", 99), "?");             // a control sequence introducer in one character
  EXPECT_EQ(printable("\xff\xc3(", 99), "?\?(");         // no character; a character cut short
  EXPECT_EQ(printable("\xc0\x80", 99), "??");            // an overlong 0
  EXPECT_EQ(printable("\xed\xa0\x80", 99), "???");       // half a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80", 99), "????");  // above U+10FFFF
  EXPECT_EQ(printable("\xe2\x82", 99), "??");
}

}  // namespace
}  // namespace bitfed
