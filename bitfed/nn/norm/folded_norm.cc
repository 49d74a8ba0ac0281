#include "bitfed/nn/norm/folded_norm.h"

#include <cmath>

#include "bitfed/nn/norm/norm_parameters.h"

namespace bitfed {

void fold_norm(std::span<const float> scale, std::span<const float> shift, std::span<const float> mean,
               std::span<const float> variance, float* factor, float* offset) {
  for (size_t c = 0; c < scale.size(); ++c) {
    factor[c] = scale[c] / std::sqrt(variance[c] + NormParameters::kEpsilon);
    offset[c] = shift[c] - mean[c] * factor[c];
  }
}

FoldedNorm fold_norm(std::span<const float> scale, std::span<const float> shift, std::span<const float> mean,
                     std::span<const float> variance) {
  FoldedNorm norm{std::vector<float>(scale.size()), std::vector<float>(scale.size())};
  fold_norm(scale, shift, mean, variance, norm.factor.data(), norm.offset.data());
  return norm;
}

}  // namespace bitfed
