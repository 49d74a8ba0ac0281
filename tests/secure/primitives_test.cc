// Known answers of RFC 7748, 5869 and 8439, and Shamir's scheme by hand.

#include "bitfed/secure/protocol/primitives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "bitfed/secure/protocol/masks.h"
#include "bitfed/secure/protocol/shamir.h"
#include "tests/base/error_text.h"

namespace bitfed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Bytes bytes_of(const std::string& hex) {
  Bytes bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

template <size_t size = 32>
std::array<uint8_t, size> block_of(const Bytes& bytes) {
  std::array<uint8_t, size> block;
  EXPECT_EQ(bytes.size(), size);
  std::copy(bytes.begin(), bytes.end(), block.begin());
  return block;
}

Bytes counting(uint8_t from, size_t size) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), from);
  return bytes;
}

// RFC 7748, 6.1.
TEST(PrimitivesTest, X25519) {
  const Secret alice = block_of(bytes_of("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"));
  const Secret bob = block_of(bytes_of("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"));
  EXPECT_EQ(KeyPair(alice).public_key(),
            block_of(bytes_of("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")));
  const Secret shared =
      block_of(bytes_of("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"));
  EXPECT_EQ(KeyPair(alice).agree(KeyPair(bob).public_key()), shared);
  EXPECT_EQ(KeyPair(bob).agree(KeyPair(alice).public_key()), shared);
}

TEST(PrimitivesTest, AKeyOfLowOrderIsRefused) {
  EXPECT_THAT(error_text([] { KeyPair(random_secret()).agree(PublicKey{}); }), HasSubstr("not of low order"));
  EXPECT_THAT(error_text([] { KeyPair(random_secret()).agree(PublicKey{1}); }),
              HasSubstr("not of low order"));
}

// RFC 5869, cases 1 to 3.
TEST(PrimitivesTest, Hkdf) {
  EXPECT_EQ(hkdf_extract(Bytes(22, 0x0b), counting(0, 13)),
            block_of(bytes_of("077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5")));
  EXPECT_EQ(hkdf(Bytes(22, 0x0b), counting(0, 13), counting(0xf0, 10), 42),
            bytes_of("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"));
  EXPECT_EQ(
      hkdf(counting(0, 80), counting(0x60, 80), counting(0xb0, 80), 82),
      bytes_of("b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c6"
               "5e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"));
  EXPECT_EQ(hkdf(Bytes(22, 0x0b), {}, {}, 42),
            bytes_of("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"));
}

// RFC 8439, 2.3.2.
TEST(PrimitivesTest, ChaCha20) {
  KeyStream stream(block_of(counting(0, 32)), block_of<12>(bytes_of("000000090000004a00000000")), 1);
  Bytes bytes(64);
  stream.next(std::span(bytes).first(10));
  stream.next(std::span(bytes).subspan(10));
  EXPECT_EQ(bytes,
            bytes_of("10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4ed2826446079faa0914c2"
                     "d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"));
}

// In one piece, in many, and of a stream that was another's before.
TEST(PrimitivesTest, KeyStreamsInPieces) {
  Bytes whole(70000, 0xee);
  KeyStream(Secret{1}).next(whole);
  Bytes pieces(whole.size(), 0xdd);
  KeyStream stream(Secret{2}, block_of<12>(counting(1, 12)), 5);
  stream.next(std::span(pieces).first(100));
  stream.restart(Secret{1});
  size_t at = 0;
  for (size_t size = 1; at < pieces.size(); at += size, size *= 3)
    stream.next(std::span(pieces).subspan(at, std::min(size, pieces.size() - at)));
  EXPECT_EQ(pieces, whole);
}

// RFC 8439, 2.8.2.
TEST(PrimitivesTest, ChaCha20Poly1305) {
  const std::string text =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen "
      "would be it.";
  const Bytes plain(text.begin(), text.end());
  const Secret key = block_of(counting(0x80, 32));
  const Nonce nonce = block_of<12>(bytes_of("070000004041424344454647"));
  const Bytes about = bytes_of("50515253c0c1c2c3c4c5c6c7");
  Bytes sealed = seal(key, plain, about, nonce);
  EXPECT_EQ(Bytes(sealed.begin(), sealed.begin() + 16), bytes_of("d31a8d34648e60db7b86afbc53ef7ec2"));
  EXPECT_EQ(Bytes(sealed.end() - 16, sealed.end()), bytes_of("1ae10b594f09e26a7e902ecbd0600691"));
  EXPECT_EQ(open_sealed(key, sealed, about, nonce), plain);
  EXPECT_EQ(open_sealed(key, sealed, bytes_of("50"), nonce), std::nullopt);
  sealed[3] ^= 1;
  EXPECT_EQ(open_sealed(key, sealed, about, nonce), std::nullopt);
  EXPECT_EQ(open_sealed(key, Bytes(15), about, nonce), std::nullopt);
}

TEST(ShamirTest, ByHand) {
  // 5 + 7 x over GF(256), where 7 * 2 = 14 and 7 * 3 = 9: the shares at 1, 2, 3 are 2, 11, 12. All bytes of
  // the secret alike; the key stream is not ours to choose, so only the joining is by hand.
  const auto all = [](uint8_t value) {
    Secret secret;
    secret.fill(value);
    return secret;
  };
  EXPECT_EQ(join_shares({{1, all(2)}, {2, all(11)}}), all(5));
  EXPECT_EQ(join_shares({{2, all(11)}, {3, all(12)}}), all(5));
  EXPECT_EQ(join_shares({{1, all(2)}, {3, all(12)}}), all(5));
  // The field of AES: 0x57 * 0x83 = 0xc1 (FIPS 197, 4.2). A line through 0 of slope 0x57.
  EXPECT_EQ(join_shares({{1, all(0x57)}, {0x83, all(0xc1)}}), all(0));
}

TEST(ShamirTest, AnyThresholdOfSharesOpensAndFewerDoNot) {
  const Secret secret = random_secret();
  for (const auto& [count, threshold] : {std::pair{3, 3}, {10, 7}, {65, 44}, {255, 171}, {1, 1}, {5, 1}}) {
    const std::vector<Secret> shares = split_secret(secret, count, threshold, random_secret());
    std::map<uint8_t, Secret> first, last;
    for (int i = 0; i < threshold; ++i) {
      first[static_cast<uint8_t>(i + 1)] = shares[i];
      last[static_cast<uint8_t>(count - i)] = shares[count - i - 1];
    }
    EXPECT_EQ(join_shares(first), secret);
    EXPECT_EQ(join_shares(last), secret);
    if (threshold == 1) continue;
    first.erase(1);
    EXPECT_NE(join_shares(first), secret);
  }
}

TEST(MasksTest, TakeTheKeyStreamsBytes) {
  Bytes stream(2 + 2 * 2 + 8);
  KeyStream({}).next(stream);
  ModularVector vector{{{2, 3}, {2, 12}, {1, 62}}, {7, 0, 1, 0xfff, 5}};
  const ModularVector before = vector;
  apply_mask({}, MaskSign::kAdd, &vector);
  uint64_t last = 0;
  for (int i = 7; i >= 0; --i) last = last << 8 | stream[6 + i];
  EXPECT_THAT(vector.values,
              ElementsAre((7 + stream[0]) & 7, stream[1] & 7, (1 + stream[2] + 256 * stream[3]) & 0xfff,
                          (0xfff + stream[4] + 256 * stream[5]) & 0xfff, (5 + last) & modular_mask(62)));
  apply_mask({}, MaskSign::kSubtract, &vector);
  EXPECT_EQ(vector, before);
}

}  // namespace
}  // namespace bitfed
