#include "bitfed/base/hash/random.h"

#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

// Stafford's variant 13 of the finaliser of MurmurHash3: a bijection that mixes all 64 bits.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t combine(uint64_t hash, uint64_t value) {
  return mix(hash + 0x9e3779b97f4a7c15u + mix(value));
}

}  // namespace

// Neural kernels draw many blocks at a time: isa/draw_loops.h.
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  auto [a, b, c, d] = counter;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * a;
    const uint64_t product1 = uint64_t{0xCD9E8D57} * c;
    a = static_cast<uint32_t>(product1 >> 32) ^ b ^ key[0];
    b = static_cast<uint32_t>(product1);
    c = static_cast<uint32_t>(product0 >> 32) ^ d ^ key[1];
    d = static_cast<uint32_t>(product0);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return {a, b, c, d};
}

// Every field of the key passes through a full mix, so that keys which differ in one bit give unrelated
// streams. Changing this changes every result.
RandomStream::RandomStream(const StreamKey& key) {
  uint64_t purpose = 0xcbf29ce484222325u;  // FNV-1a of the purpose's bytes
  for (const char c : key.purpose) purpose = (purpose ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  const uint64_t hash = combine(combine(combine(mix(key.seed), purpose), key.round), key.client);
  key_ = {static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32)};
}

RandomStream RandomStream::substream(uint64_t index) const {
  return RandomStream(key_, combine(lane_, index));
}

std::array<uint32_t, 4> RandomStream::counter(uint64_t position) const {
  return {static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32),
          static_cast<uint32_t>(lane_), static_cast<uint32_t>(lane_ >> 32)};
}

uint32_t RandomStream::next_u32() {
  if (used_ == 4) {
    block_ = philox4x32(counter(position_++), key_);
    used_ = 0;
  }
  return block_[used_++];
}

uint64_t RandomStream::next_u64() {
  const uint64_t low = next_u32();
  return low | uint64_t{next_u32()} << 32;
}

// Lemire, "Fast random integer generation in an interval", ACM TOMACS 29 (2019).
uint32_t RandomStream::below(uint32_t bound) {
  assert(bound > 0);
  uint64_t product = uint64_t{next_u32()} * bound;
  if (static_cast<uint32_t>(product) < bound) {
    const uint32_t reject = -bound % bound;
    while (static_cast<uint32_t>(product) < reject) product = uint64_t{next_u32()} * bound;
  }
  return static_cast<uint32_t>(product >> 32);
}

double RandomStream::uniform() {
  return static_cast<double>(next_u64() >> 11) * 0x1p-53;
}

// Marsaglia's polar method. The second variate is discarded: a stream stays a pure function of its position.
double RandomStream::normal() {
  for (;;) {
    const double u = 2 * uniform() - 1;
    const double v = 2 * uniform() - 1;
    const double s = u * u + v * v;
    if (s > 0 && s < 1) return u * std::sqrt(-2 * std::log(s) / s);
  }
}

// Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000); shapes
// below one by their boosting identity.
double RandomStream::gamma(double shape) {
  assert(shape > 0);
  if (shape < 1) {
    const double boosted = gamma(shape + 1);
    return boosted * std::pow(1 - uniform(), 1 / shape);
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(1 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

}  // namespace bitfed
