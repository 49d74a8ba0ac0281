#pragma once

#include <cstring>

#include "bitfed/bits/kernels.h"

// The clause matching that all vector units share. Each unit supplies its own Block: 512 bits in registers.
// Block must be a type of the unit's unnamed namespace, so that every unit gets code of its own; for the same
// reason nothing here is a template of the standard library.
namespace bitfed::isa {

// Clauses that are processed together: their lists, masks and matches fit into the first-level cache with the
// bitmaps.
inline constexpr size_t kMatchChunk = 128;

// The group at which a clause is ruled out is unpredictable, and a mispredicted branch costs more than eight
// loads. So all clauses of a chunk advance together, one group of literals per round, and the survivors are
// compacted into a list without a branch.
template <typename Block, size_t kFixedBlocks>
class ChunkMatcher {
 public:
  static constexpr size_t kClauses = kMatchChunk;

  // For clauses `begin` … `begin + count - 1`; `matches` points to the matches of the first.
  ChunkMatcher(const uint64_t* bitmaps, size_t blocks, const ClauseSpan& clauses, size_t begin, size_t count,
               uint64_t* matches)
      : count_(count),
        blocks_(blocks),
        bitmaps_(bitmaps),
        literals_(clauses.literals),
        filler_(clauses.filler),
        first_(clauses.first + begin),
        groups_(clauses.groups + begin),
        masks_(clauses.masks + begin * clauses.mask_stride),
        mask_stride_(clauses.mask_stride),
        matches_(matches) {}

  // Sets bit i of `fired`, kClauses bits at most, if any bit of clause i remains. Inlined so that the members
  // stay in registers: otherwise the compiler must assume that stores to `matches` change them.
  [[gnu::always_inline]] void match(uint64_t* fired) {
    uint16_t left[kClauses];  // clauses with bits and groups remaining
    size_t left_count = 0;
    for (size_t begin = 0; begin < count_; begin += 64) {
      const size_t count = count_ - begin < 64 ? count_ - begin : 64;
      uint64_t alive = 0;
      for (size_t i = 0; i < count; ++i) {
        const size_t clause = begin + i;
        alive |= uint64_t{advance(clause, 0, masks_ + clause * mask_stride_)} << i;
      }
      fired[begin / 64] = alive;
      for (; alive != 0; alive &= alive - 1) {
        const size_t clause = begin + static_cast<size_t>(__builtin_ctzll(alive));
        left[left_count] = static_cast<uint16_t>(clause);
        left_count += groups_[clause] > 1 ? 1 : 0;
      }
    }

    Death deaths[kClauses];  // after the first round
    size_t death_count = 0;
    for (size_t round = 1; left_count > 0; ++round) {
      size_t next_count = 0;
      for (size_t k = 0; k < left_count; ++k) {
        const uint16_t clause = left[k];
        const size_t alive = advance(clause, round, matches_ + clause * words());
        left[next_count] = clause;
        next_count += alive & (groups_[clause] > round + 1 ? 1 : 0);
        deaths[death_count] = {clause, static_cast<uint16_t>(round)};
        death_count += 1 - alive;
      }
      left_count = next_count;
    }
    for (size_t k = 0; k < death_count; ++k) {
      fired[deaths[k].clause / 64] &= ~(uint64_t{1} << deaths[k].clause % 64);
      bring_forward(deaths[k]);
    }
  }

 private:
  struct Death {
    uint16_t clause;
    uint16_t round;
  };

  size_t words() const { return 8 * (kFixedBlocks > 0 ? kFixedBlocks : blocks_); }

  // 0 or 1. The asm hides from the compiler that there are only two values, or it would make a branch.
  static size_t is_set(const Block& block) {
    size_t alive = block.is_set() ? 1 : 0;
    asm("" : "+r"(alive));
    return alive;
  }

  // ANDs one group of one clause; 1 if bits remain, else 0.
  size_t advance(size_t clause, size_t round, const uint64_t* so_far) {
    // Four literals per load: one load each would occupy the ports that load their bitmaps.
    uint64_t fours[kLiteralGroup / 4];
    std::memcpy(fours, literals_ + first_[clause] + round * kLiteralGroup, sizeof fours);
    uint64_t* matches = matches_ + clause * words();
    Block any = Block::zero();
    if constexpr (kFixedBlocks > 0) {
      Block match[kFixedBlocks];  // literals in the outer loop: each is looked up once for all blocks
      for (size_t b = 0; b < kFixedBlocks; ++b) match[b] = Block::load(so_far + 8 * b);
      for (size_t i = 0; i < kLiteralGroup; ++i) {
        const uint64_t* bitmap = bitmap_of(fours[i / 4], i % 4);
        for (size_t b = 0; b < kFixedBlocks; ++b) match[b] = match[b] & Block::load(bitmap + 8 * b);
      }
      for (size_t b = 0; b < kFixedBlocks; ++b) {
        match[b].store(matches + 8 * b);
        any = any | match[b];
      }
    } else {
      for (size_t at = 0; at < words(); at += 8) {
        Block match = Block::load(so_far + at);
        for (size_t i = 0; i < kLiteralGroup; ++i)
          match = match & Block::load(bitmap_of(fours[i / 4], i % 4) + at);
        match.store(matches + at);
        any = any | match;
      }
    }
    return is_set(any);
  }

  // The bitmap of literal `index` of the four in a word.
  const uint64_t* bitmap_of(uint64_t four, size_t index) const {
    return bitmaps_ + (four >> 16 * index & 0xffff) * words();
  }

  // The group that ruled a clause out is likely to do so again: it moves to the front. Fillers stay at the
  // end.
  void bring_forward(Death death) const {
    typedef uint16_t Group __attribute__((vector_size(kLiteralGroup * sizeof(uint16_t))));
    uint16_t* front = literals_ + first_[death.clause];
    uint16_t* culprit = front + death.round * kLiteralGroup;
    Group a;
    Group b;
    std::memcpy(&a, front, sizeof a);
    std::memcpy(&b, culprit, sizeof b);
    const Group stays = b == filler_;  // all bits set where b holds a filler
    const Group differs = (a ^ b) & ~stays;
    a ^= differs;
    b ^= differs;
    std::memcpy(front, &a, sizeof a);
    std::memcpy(culprit, &b, sizeof b);
  }

  size_t count_;
  size_t blocks_;
  const uint64_t* bitmaps_;
  uint16_t* literals_;
  uint16_t filler_;
  const uint32_t* first_;
  const uint16_t* groups_;
  const uint64_t* masks_;
  size_t mask_stride_;
  uint64_t* matches_;
};

template <typename Matcher>
void match_in_chunks(const uint64_t* bitmaps, size_t blocks, const ClauseSpan& clauses, uint64_t* matches,
                     uint64_t* fired) {
  static_assert(Matcher::kClauses % 64 == 0);
  for (size_t begin = 0; begin < clauses.count; begin += Matcher::kClauses) {
    const size_t left = clauses.count - begin;
    const size_t count = left < Matcher::kClauses ? left : Matcher::kClauses;
    Matcher matcher(bitmaps, blocks, clauses, begin, count, matches + begin * 8 * blocks);
    matcher.match(fired + begin / 64);
  }
}

template <typename Block>
void match_clauses(const uint64_t* bitmaps, size_t blocks, const ClauseSpan& clauses, uint64_t* matches,
                   uint64_t* fired) {
  if (blocks == 1) {
    match_in_chunks<ChunkMatcher<Block, 1>>(bitmaps, blocks, clauses, matches, fired);
  } else if (blocks == 2) {
    match_in_chunks<ChunkMatcher<Block, 2>>(bitmaps, blocks, clauses, matches, fired);
  } else {
    match_in_chunks<ChunkMatcher<Block, 0>>(bitmaps, blocks, clauses, matches, fired);
  }
}

}  // namespace bitfed::isa
