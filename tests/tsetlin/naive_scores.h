#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bitfed/base/hash/random.h"
#include "bitfed/data/booleanize/booleanizer.h"
#include "bitfed/data/dataset.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "tests/tsetlin/naive_patches.h"

namespace bitfed {

// Random images of bytes.
inline Dataset random_dataset(size_t count, size_t height, size_t width, size_t channels,
                              RandomStream& random) {
  Dataset data;
  data.name = "random";
  data.height = height;
  data.width = width;
  data.channels = channels;
  for (size_t i = 0; i < count * data.image_bytes(); ++i)
    data.pixels.push_back(static_cast<uint8_t>(random.below(256)));
  for (size_t i = 0; i < count; ++i) data.labels.push_back(static_cast<uint16_t>(i % 2));
  data.class_names = {"a", "b"};
  return data;
}

// Clauses of a few random literals each, some empty, some without weight.
inline TsetlinMember random_member(const BooleanizerSpec& booleanizer, const PatchShape& shape,
                                   size_t classes, size_t clauses, RandomStream& random) {
  TsetlinMember member;
  member.booleanizer = booleanizer;
  member.shape = shape;
  member.clauses = clauses;
  member.actions = BitMatrix(classes * clauses, shape.literals());
  for (size_t row = 0; row < classes * clauses; ++row) {
    const uint32_t included = random.below(7);
    for (uint32_t i = 0; i < included; ++i) {
      member.actions.set(row, random.below(static_cast<uint32_t>(shape.literals())), true);
    }
    member.weights.push_back(static_cast<int32_t>(random.below(21)) - 10);
  }
  for (size_t label = 0; label < classes; ++label)
    member.bias.push_back(static_cast<int32_t>(random.below(31)) - 15);
  return member;
}

// Bias and the weights of the clauses that fire, for every sample and class: [sample][class], unclamped.
inline std::vector<int64_t> naive_sums(const TsetlinMember& member, size_t classes, const BitImages& images) {
  std::vector<int64_t> sums;
  for (size_t sample = 0; sample < images.count; ++sample) {
    const auto patches = naive_patches(images, sample, member.shape);
    for (size_t label = 0; label < classes; ++label) {
      int64_t sum = member.bias[label];
      for (size_t row = label * member.clauses; row < (label + 1) * member.clauses; ++row) {
        size_t included = 0;
        for (size_t literal = 0; literal < member.shape.literals(); ++literal) {
          included += member.actions.get(row, literal) ? 1 : 0;
        }
        const bool fires =
            included > 0 && std::any_of(patches.begin(), patches.end(), [&](const auto& patch) {
              return naive_match(patch, [&](size_t l) { return member.actions.get(row, l); });
            });
        if (fires) sum += member.weights[row];
      }
      sums.push_back(sum);
    }
  }
  return sums;
}

// A model's scores by the definition in TsetlinMember's comment.
inline std::vector<float> naive_scores(const TsetlinModel& model, const Dataset& data) {
  std::vector<float> scores(data.size() * model.class_count());
  for (const TsetlinMember& member : model.members()) {
    std::vector<int64_t> sums = naive_sums(member, model.class_count(), booleanize(member.booleanizer, data));
    if (member.clamp > 0) {
      for (int64_t& sum : sums) sum = std::min<int64_t>(member.clamp, std::max<int64_t>(-member.clamp, sum));
    }
    float scale = member.scale;
    if (scale == 0) {
      int64_t least = sums[0];
      int64_t most = sums[0];
      for (const int64_t sum : sums) {
        least = std::min(least, sum);
        most = std::max(most, sum);
      }
      scale = most == least ? 1.0f : static_cast<float>(most - least);
    }
    for (size_t i = 0; i < scores.size(); ++i) scores[i] += static_cast<float>(sums[i]) / scale;
  }
  return scores;
}

}  // namespace bitfed
