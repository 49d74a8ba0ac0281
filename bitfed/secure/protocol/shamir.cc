#include "bitfed/secure/protocol/shamir.h"

#include <cassert>
#include <cstring>

namespace bitfed {
namespace {

using Words = std::array<uint64_t, 4>;  // 32 elements of the field, side by side

Words words_of(const Secret& secret) {
  Words words;
  std::memcpy(words.data(), secret.data(), secret.size());
  return words;
}

// Each element times the same public one.
Words times(Words words, uint8_t factor) {
  Words product{};
  for (; factor != 0; factor >>= 1) {
    for (size_t i = 0; i < words.size(); ++i) {
      if ((factor & 1) != 0) product[i] ^= words[i];
      const uint64_t high = words[i] >> 7 & 0x0101010101010101;
      words[i] = (words[i] & 0x7f7f7f7f7f7f7f7f) << 1 ^ high * 0x1b;
    }
  }
  return product;
}

// Of public elements.
uint8_t times(uint8_t a, uint8_t b) {
  return static_cast<uint8_t>(times(Words{a, 0, 0, 0}, b)[0]);
}

// a^254.
uint8_t inverse(uint8_t a) {
  uint8_t result = 1;
  for (int i = 0; i < 7; ++i) {
    a = times(a, a);
    result = times(result, a);
  }
  return result;
}

}  // namespace

std::vector<Secret> split_secret(const Secret& secret, size_t count, size_t threshold,
                                 const Secret& coefficients) {
  assert(threshold >= 1 && threshold <= count && count <= kMaxShares);
  std::vector<Secret> drawn(threshold - 1);  // from the highest power down
  KeyStream stream(coefficients);
  for (Secret& coefficient : drawn) stream.next(coefficient);
  std::vector<Secret> shares(count);
  for (size_t x = 1; x <= count; ++x) {
    Words value{};
    const auto step = [&](const Secret& coefficient) {
      value = times(value, static_cast<uint8_t>(x));
      const Words next = words_of(coefficient);
      for (size_t i = 0; i < value.size(); ++i) value[i] ^= next[i];
    };
    for (const Secret& coefficient : drawn) step(coefficient);
    step(secret);
    std::memcpy(shares[x - 1].data(), value.data(), sizeof(value));
  }
  return shares;
}

Secret join_shares(const std::map<uint8_t, Secret>& shares) {
  Words secret{};
  for (const auto& [x, share] : shares) {
    assert(x != 0);
    // Lagrange's coefficient at 0: the product of other / (other - x), where - is ^.
    uint8_t above = 1;
    uint8_t below = 1;
    for (const auto& [other, unused] : shares) {
      if (other == x) continue;
      above = times(above, other);
      below = times(below, static_cast<uint8_t>(other ^ x));
    }
    const Words part = times(words_of(share), times(above, inverse(below)));
    for (size_t i = 0; i < secret.size(); ++i) secret[i] ^= part[i];
  }
  Secret result;
  std::memcpy(result.data(), secret.data(), result.size());
  return result;
}

}  // namespace bitfed
