#include "bitfed/nn/folded_norm.h"

#include <cmath>

#include "bitfed/nn/norm_parameters.h"

namespace bitfed {

FoldedNorm fold_norm(std::span<const float> scale, std::span<const float> shift, std::span<const float> mean,
                     std::span<const float> variance) {
  FoldedNorm norm;
  for (size_t c = 0; c < scale.size(); ++c) {
    const float factor = scale[c] / std::sqrt(variance[c] + NormParameters::kEpsilon);
    norm.factor.push_back(factor);
    norm.offset.push_back(shift[c] - mean[c] * factor);
  }
  return norm;
}

}  // namespace bitfed
