#include "bitfed/nn/mlp/mlp.h"

#include <cmath>

namespace bitfed {

size_t MlpShape::weights() const {
  size_t count = 0;
  for (size_t i = 0; i < layers(); ++i) count += size_t{widths[i]} * widths[i + 1];
  return count;
}

size_t MlpShape::units() const {
  size_t count = 0;
  for (size_t i = 0; i < layers(); ++i) count += widths[i + 1];
  return count;
}

MlpParameters initial_parameters(const MlpShape& shape, RandomStream random) {
  MlpParameters parameters;
  parameters.weights.reserve(shape.weights());
  for (size_t layer = 0; layer < shape.layers(); ++layer) {
    const size_t fan = size_t{shape.widths[layer]} + shape.widths[layer + 1];
    const double limit = std::sqrt(6.0 / static_cast<double>(fan));
    const size_t count = size_t{shape.widths[layer]} * shape.widths[layer + 1];
    for (size_t i = 0; i < count; ++i)
      parameters.weights.push_back(static_cast<float>(limit * (2 * random.uniform() - 1)));
  }
  parameters.shifts.assign(shape.units(), 0);
  parameters.means.assign(shape.units(), 0);
  parameters.variances.assign(shape.units(), 1);
  return parameters;
}

}  // namespace bitfed
