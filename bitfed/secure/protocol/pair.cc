#include "bitfed/secure/protocol/pair.h"

#include <algorithm>
#include <string_view>

namespace bitfed {
namespace {

Bytes text_of(std::string_view purpose) {
  Bytes text(purpose.begin(), purpose.end());
  text.push_back(0);
  return text;
}

void put_published(const RoundKeys& keys, Bytes* text) {
  for (int i = 0; i < 4; ++i) text->push_back(static_cast<uint8_t>(keys.number >> (8 * i)));
  text->insert(text->end(), keys.secret.begin(), keys.secret.end());
  text->insert(text->end(), keys.channel.begin(), keys.channel.end());
}

// The next bytes of what HKDF gave.
template <size_t size>
void take(std::array<uint8_t, size>* part, const uint8_t** from) {
  std::copy_n(*from, size, part->begin());
  *from += size;
}

}  // namespace

Pair pair_of(const Secret& agreed, const Digest& sum, const RoundKeys& one, const RoundKeys& other) {
  Bytes info = text_of("pair");
  info.insert(info.end(), sum.begin(), sum.end());
  put_published(one.number < other.number ? one : other, &info);
  put_published(one.number < other.number ? other : one, &info);
  Pair pair;
  const Bytes bytes = hkdf_expand(agreed, info, 3 * agreed.size());
  const uint8_t* from = bytes.data();
  take(&pair.to_higher, &from);
  take(&pair.to_lower, &from);
  take(&pair.key, &from);
  return pair;
}

PairMask mask_of(const Secret& pair_key) {
  PairMask mask;
  const Bytes bytes = hkdf_expand(pair_key, text_of("mask"), mask.seed.size() + mask.check.size());
  const uint8_t* from = bytes.data();
  take(&mask.seed, &from);
  take(&mask.check, &from);
  return mask;
}

Secret wrap(const Secret& wrap_key, const Secret& pair_key, const RoundKeys& peer) {
  Bytes info = text_of("wrap");
  put_published(peer, &info);
  const Bytes pad = hkdf_expand(wrap_key, info, pair_key.size());
  Secret result;
  std::transform(pair_key.begin(), pair_key.end(), pad.begin(), result.begin(),
                 [](uint8_t a, uint8_t b) { return static_cast<uint8_t>(a ^ b); });
  return result;
}

}  // namespace bitfed
