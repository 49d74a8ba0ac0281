#include "bitfed/base/hash/digest.h"

#include <gtest/gtest.h>

#include <string>

namespace bitfed {
namespace {

// The examples of FIPS 180-2 (appendix B) and NIST's example values for SHA-256.
TEST(Sha256, PublishedVectors) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                       "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

std::string counting_text(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7);
  return text;
}

TEST(Sha256, PiecesGiveTheSameAtEverySplit) {
  const std::string text = counting_text(200);
  const std::string expected = sha256_hex(text);
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); second += 13) {
      Sha256 digest;
      digest.update(text.substr(0, first)).update(text.substr(first, second - first));
      EXPECT_EQ(digest.update(text.substr(second)).hex(), expected) << first << ", " << second;
    }
  }
}

// Lengths around the padding's own cases, byte by byte against all at once.
TEST(Sha256, EveryLengthAroundABlock) {
  for (size_t size = 50; size < 140; ++size) {
    const std::string text = counting_text(size);
    Sha256 digest;
    for (const char& c : text) digest.update(std::string_view(&c, 1));
    EXPECT_EQ(digest.hex(), sha256_hex(text)) << size << " bytes";
  }
}

}  // namespace
}  // namespace bitfed
