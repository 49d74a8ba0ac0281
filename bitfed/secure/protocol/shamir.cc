#include "bitfed/secure/protocol/shamir.h"

#include <array>
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

Secret secret_of(const Words& words) {
  Secret secret;
  std::memcpy(secret.data(), words.data(), secret.size());
  return secret;
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

// Of public elements other than 0: powers of 3, and their exponents.
struct Powers {
  std::array<uint8_t, 255> power;
  std::array<uint8_t, 256> exponent;

  Powers() : power{}, exponent{} {
    uint8_t next = 1;
    for (size_t i = 0; i < power.size(); ++i) {
      power[i] = next;
      exponent[next] = static_cast<uint8_t>(i);
      next = static_cast<uint8_t>(next ^ next << 1 ^ (next >> 7) * 0x11b);
    }
  }
};

// From the highest power down; the secret is last.
std::vector<Secret> polynomial_of(const Secret& secret, size_t threshold, const Secret& coefficients) {
  assert(threshold >= 1);
  std::vector<Secret> polynomial(threshold);
  KeyStream stream(coefficients);
  if (threshold > 1)
    stream.next({reinterpret_cast<uint8_t*>(polynomial.data()), (threshold - 1) * secret.size()});
  polynomial.back() = secret;
  return polynomial;
}

Secret value_at(uint8_t x, const std::vector<Secret>& polynomial) {
  Words value{};
  for (const Secret& coefficient : polynomial) {
    value = times(value, x);
    const Words next = words_of(coefficient);
    for (size_t i = 0; i < value.size(); ++i) value[i] ^= next[i];
  }
  return secret_of(value);
}

}  // namespace

std::vector<Secret> split_secret(const Secret& secret, size_t count, size_t threshold,
                                 const Secret& coefficients) {
  assert(threshold <= count && count <= kMaxShares);
  const std::vector<Secret> polynomial = polynomial_of(secret, threshold, coefficients);
  std::vector<Secret> shares;
  for (size_t x = 1; x <= count; ++x) shares.push_back(value_at(static_cast<uint8_t>(x), polynomial));
  return shares;
}

Secret share_at(uint8_t x, const Secret& secret, size_t threshold, const Secret& coefficients) {
  return value_at(x, polynomial_of(secret, threshold, coefficients));
}

Secret join_shares(const std::map<uint8_t, Secret>& shares) {
  static const Powers kPowers;
  Words secret{};
  for (const auto& [x, share] : shares) {
    assert(x != 0);
    // Lagrange's coefficient at 0: the product of other / (other - x), where - is ^.
    size_t exponent = 0;
    for (const auto& [other, unused] : shares) {
      if (other != x) exponent += 255 + kPowers.exponent[other] - kPowers.exponent[other ^ x];
    }
    const Words part = times(words_of(share), kPowers.power[exponent % 255]);
    for (size_t i = 0; i < secret.size(); ++i) secret[i] ^= part[i];
  }
  return secret_of(secret);
}

}  // namespace bitfed
