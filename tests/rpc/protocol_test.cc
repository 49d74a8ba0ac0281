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
  EXPECT_EQ(common_protocol(0, 9), kMostProtocol);
  EXPECT_EQ(common_protocol(0, 0), std::nullopt);
  EXPECT_EQ(common_protocol(kMostProtocol + 1, kMostProtocol + 5), std::nullopt);
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

}  // namespace
}  // namespace bitfed
