#pragma once

// Images that a network can learn in a few steps, for the tests of the network methods.

#include "bitfed/base/hash/random.h"
#include "bitfed/data/dataset.h"
#include "bitfed/federated/method.h"

namespace bitfed {

// Noise of 16 x 16 pixels, every second image 100 brighter.
inline Dataset some_images(size_t count) {
  RandomStream random({8, "images"});
  Dataset data;
  data.name = "some";
  data.height = data.width = 16;
  data.channels = 1;
  data.pixel_mean = data.pixel_std = {0.5f};
  data.class_names = {"dark", "light"};
  for (size_t i = 0; i < count; ++i) {
    data.labels.push_back(static_cast<uint16_t>(i % 2));
    for (size_t k = 0; k < 256; ++k)
      data.pixels.push_back(static_cast<uint8_t>(random.below(128) + (i % 2) * 100));
  }
  return data;
}

inline ClientContext context_of(uint64_t seed) {
  return {RandomStream({seed, "client"}), {}, [](double) {}, [](uint64_t) {}, {}, [](const State&) {}};
}

}  // namespace bitfed
