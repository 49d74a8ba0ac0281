#include "bitfed/secure/protocol/pair.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace bitfed {
namespace {

// What a key is expanded with: its purpose, and what it is bound to.
class Info {
 public:
  explicit Info(std::string_view purpose) {
    for (const char letter : purpose) put(static_cast<uint8_t>(letter));
    put(0);
  }
  Info& add(const std::array<uint8_t, 32>& part) {
    for (const uint8_t byte : part) put(byte);
    return *this;
  }
  Info& add(const RoundKeys& keys) {
    for (int i = 0; i < 4; ++i) put(static_cast<uint8_t>(keys.number >> (8 * i)));
    return add(keys.secret).add(keys.channel);
  }
  std::span<const uint8_t> bytes() const { return std::span(bytes_).first(size_); }

 private:
  void put(uint8_t byte) { bytes_.at(size_++) = byte; }

  std::array<uint8_t, 192> bytes_;  // a sum and the keys of both are 168
  size_t size_ = 0;
};

// The next bytes of what HKDF gave.
template <size_t size>
void take(std::array<uint8_t, size>* part, const uint8_t** from) {
  std::copy_n(*from, size, part->begin());
  *from += size;
}

}  // namespace

Pair pair_of(const Secret& agreed, const Digest& sum, const RoundKeys& one, const RoundKeys& other) {
  Info info("pair");
  info.add(sum).add(one.number < other.number ? one : other).add(one.number < other.number ? other : one);
  Pair pair;
  std::array<uint8_t, 3 * sizeof(Secret)> bytes;
  hkdf_expand(agreed, info.bytes(), bytes);
  const uint8_t* from = bytes.data();
  take(&pair.to_higher, &from);
  take(&pair.to_lower, &from);
  take(&pair.key, &from);
  return pair;
}

PairMask mask_of(const Secret& pair_key) {
  PairMask mask;
  std::array<uint8_t, sizeof(Secret) + sizeof(PairCheck)> bytes;
  hkdf_expand(pair_key, Info("mask").bytes(), bytes);
  const uint8_t* from = bytes.data();
  take(&mask.seed, &from);
  take(&mask.check, &from);
  return mask;
}

Secret wrap(const Secret& wrap_key, const Secret& pair_key, const RoundKeys& peer) {
  Secret result;
  hkdf_expand(wrap_key, Info("wrap").add(peer).bytes(), result);
  for (size_t i = 0; i < result.size(); ++i) result[i] ^= pair_key[i];
  return result;
}

}  // namespace bitfed
