#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "bitfed/data/booleanize/booleanizer.h"
#include "bitfed/data/catalog/catalog.h"

namespace bitfed {

// What all speeds are measured on: the first samples of Fashion-MNIST, as bits.
inline constexpr size_t kTrainSamples = 6000;

struct FashionBits {
  BitImages train;
  std::vector<uint16_t> train_labels;
  BitImages test;
  std::vector<uint16_t> test_labels;
};

inline FashionBits load_fashion_bits(const std::string& booleanizer) {
  const DataSplit split = load_dataset("fashion-mnist", "");
  std::vector<uint32_t> first(kTrainSamples);
  std::iota(first.begin(), first.end(), 0u);
  const Dataset train = subset(split.train, first);
  BooleanizerSpec spec;
  spec.kind = booleanizer;
  return {booleanize(spec, train), train.labels, booleanize(spec, split.test), split.test.labels};
}

}  // namespace bitfed
