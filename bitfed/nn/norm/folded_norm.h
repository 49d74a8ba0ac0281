#pragma once

#include <span>
#include <vector>

namespace bitfed {

// Batch norm of a trained network: x * factor + offset, per channel.
struct FoldedNorm {
  std::vector<float> factor;
  std::vector<float> offset;
};

// Into given memory, and into its own.
void fold_norm(std::span<const float> scale, std::span<const float> shift, std::span<const float> mean,
               std::span<const float> variance, float* factor, float* offset);
FoldedNorm fold_norm(std::span<const float> scale, std::span<const float> shift, std::span<const float> mean,
                     std::span<const float> variance);

}  // namespace bitfed
