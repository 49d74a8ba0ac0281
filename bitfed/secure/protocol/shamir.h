#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "bitfed/secure/protocol/primitives.h"

namespace bitfed {

// Shamir's secret sharing over GF(256), byte by byte, with the field of AES: share x is the value at x of a
// polynomial of degree threshold - 1 whose value at 0 is the secret. No branch and no address depends on a
// secret.
inline constexpr size_t kMaxShares = 255;

// The shares at x = 1 to `count`. The other coefficients are the key stream of `coefficients`.
std::vector<Secret> split_secret(const Secret& secret, size_t count, size_t threshold,
                                 const Secret& coefficients);

// One of them alone.
Secret share_at(uint8_t x, const Secret& secret, size_t threshold, const Secret& coefficients);

// The secret, of exactly `threshold` shares by their x, 1 to 255. Of fewer it is anything.
Secret join_shares(const std::map<uint8_t, Secret>& shares);

}  // namespace bitfed
