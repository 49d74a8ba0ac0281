// Draws of a RandomStream, many blocks side by side, and dropout; a part of loops.h.

// Groups of kWords blocks: enough to hide the latency of a product.
constexpr size_t kDrawGroups = 4;
constexpr size_t kDrawnBlocks = kDrawGroups * kWords;

// A word of a block is the low half of 64 bits; the upper half does not matter. See philox4x32().
inline void draw_blocks(const RandomBlocks& from, size_t first, uint32_t* draws) {
  Words a[kDrawGroups], b[kDrawGroups], c[kDrawGroups], d[kDrawGroups];
#pragma GCC unroll 16
  for (size_t g = 0; g < kDrawGroups; ++g) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kWords; ++i) a[g][i] = from.position + first + g * kWords + i;
    b[g] = a[g] >> 32;
    c[g] = Words{} + from.lane;
    d[g] = c[g] >> 32;
  }
  uint64_t key0 = from.key[0];
  uint64_t key1 = from.key[1];
  for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 16
    for (size_t g = 0; g < kDrawGroups; ++g) {
      const Words product0 = low_products(a[g], 0xD2511F53);
      const Words product1 = low_products(c[g], 0xCD9E8D57);
      a[g] = (product1 >> 32) ^ b[g] ^ key0;
      b[g] = product1;
      c[g] = (product0 >> 32) ^ d[g] ^ key1;
      d[g] = product0;
    }
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
#pragma GCC unroll 16
  for (size_t g = 0; g < kDrawGroups; ++g)
    store_words(draws + 4 * g * kWords, (a[g] & UINT32_MAX) | (b[g] << 32),
                (c[g] & UINT32_MAX) | (d[g] << 32));
}

void draw(const RandomBlocks& from, size_t blocks, uint32_t* draws) {
  size_t block = 0;
  for (; block + kDrawnBlocks <= blocks; block += kDrawnBlocks) draw_blocks(from, block, draws + 4 * block);
  if (block == blocks) return;
  uint32_t last[4 * kDrawnBlocks];
  draw_blocks(from, block, last);
  __builtin_memcpy(draws + 4 * block, last, (blocks - block) * 4 * sizeof(uint32_t));
}

void drop(const Drop& d) {
  const Lanes none = all(0.0f);
  const Lanes scale = all(d.scale);
  for (size_t i = 0; i < d.count; i += kLanes) {
    const Lanes mask = where_below(d.draws + i, d.dropped_below, none, scale);
    store(d.mask + i, mask);
    store(d.out + i, load(d.x + i) * mask);
  }
}
