#include "bitfed/base/hash/md5.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace bitfed {
namespace {

// The table T of RFC 1321, section 3.4: the integer part of 4294967296 * abs(sin(i)). 53 bits of
// precision leave no entry in doubt, and the RFC's vectors are among the tests.
std::array<uint32_t, 64> sine_table() {
  std::array<uint32_t, 64> table;
  for (size_t i = 0; i < 64; ++i) {
    table[i] =
        static_cast<uint32_t>(std::floor(4294967296.0 * std::fabs(std::sin(static_cast<double>(i + 1)))));
  }
  return table;
}

constexpr std::array<std::array<int, 4>, 4> kShifts = {
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

// The auxiliary function of a round, and the word of the block that its step takes.
uint32_t mix(size_t round, uint32_t b, uint32_t c, uint32_t d) {
  if (round == 0) return (b & c) | (~b & d);
  if (round == 1) return (b & d) | (c & ~d);
  if (round == 2) return b ^ c ^ d;
  return c ^ (b | ~d);
}

size_t word_of_step(size_t step) {
  constexpr std::array<size_t, 4> kFactor = {1, 5, 3, 7};
  constexpr std::array<size_t, 4> kStart = {0, 1, 5, 0};
  const size_t round = step / 16;
  return (kStart[round] + kFactor[round] * (step % 16)) % 16;
}

}  // namespace

void Md5::compress(const uint8_t* block) {
  static const std::array<uint32_t, 64> kSines = sine_table();
  std::array<uint32_t, 16> words;
  for (size_t i = 0; i < 16; ++i) {
    words[i] = uint32_t{block[4 * i]} | uint32_t{block[4 * i + 1]} << 8 | uint32_t{block[4 * i + 2]} << 16 |
               uint32_t{block[4 * i + 3]} << 24;
  }
  auto [a, b, c, d] = state_;
  for (size_t step = 0; step < 64; ++step) {
    const size_t round = step / 16;
    const uint32_t sum = a + mix(round, b, c, d) + words[word_of_step(step)] + kSines[step];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kShifts[round][step % 4]);
  }
  const std::array<uint32_t, 4> working = {a, b, c, d};
  for (size_t i = 0; i < 4; ++i) state_[i] += working[i];
}

Md5& Md5::update(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const size_t held = length_ % 64;
    const size_t taken = std::min(bytes.size(), 64 - held);
    std::memcpy(pending_.data() + held, bytes.data(), taken);
    length_ += taken;
    bytes = bytes.subspan(taken);
    if (held + taken == 64) compress(pending_.data());
  }
  return *this;
}

Md5& Md5::update(std::string_view text) {
  return update({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

std::string Md5::hex() {
  const uint64_t bits = length_ * 8;
  const std::array<uint8_t, 64> padding = {0x80};
  const size_t held = length_ % 64;
  update({padding.data(), held < 56 ? 56 - held : 120 - held});
  std::array<uint8_t, 8> size;
  for (size_t i = 0; i < 8; ++i) size[i] = static_cast<uint8_t>(bits >> (8 * i));
  update(size);
  std::string text;
  for (const uint32_t word : state_) {
    for (int shift = 0; shift < 32; shift += 8) text += fmt::format("{:02x}", word >> shift & 0xff);
  }
  return text;
}

std::string md5_hex(std::string_view text) {
  return Md5().update(text).hex();
}

}  // namespace bitfed
