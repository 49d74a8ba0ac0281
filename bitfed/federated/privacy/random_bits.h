#pragma once

#include <cstdint>
#include <functional>

#include "bitfed/base/hash/random.h"

namespace bitfed {

// 64 random bits at each call.
using RandomWords = std::function<uint64_t()>;

// Of the operating system, for what must protect somebody. A failure if it has none.
RandomWords system_random_words();

// Of a recipe's seed, which is public: for simulations, which protect nobody.
RandomWords seeded_random_words(const StreamKey& key);

// Events of exact probabilities, made of single bits: no floating-point number is rounded on the way.
class RandomBits {
 public:
  __extension__ typedef unsigned __int128 Wide;

  explicit RandomBits(RandomWords words) : words_(std::move(words)) {}

  bool bit();
  uint64_t below(uint64_t bound);                               // bound > 0
  bool with_probability(Wide numerator, Wide denominator);      // denominator < 2^127
  bool with_probability_exp(Wide numerator, Wide denominator);  // e^-(numerator / denominator)

 private:
  bool with_probability_exp_fraction(Wide numerator, Wide denominator);  // the same, at most 1

  RandomWords words_;
  uint64_t word_ = 0;
  unsigned bits_left_ = 0;
};

}  // namespace bitfed
