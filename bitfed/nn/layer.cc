#include "bitfed/nn/layer.h"

#include <algorithm>
#include <cassert>

namespace bitfed {

std::vector<float> Parameter::numbers() const {
  std::vector<float> result;
  result.reserve(count());
  for (size_t row = 0; row < values.rows; ++row)
    result.insert(result.end(), values.row(row), values.row(row) + values.columns);
  return result;
}

void Parameter::assign(std::span<const float> numbers) {
  assert(numbers.size() == count());
  for (size_t row = 0; row < values.rows; ++row)
    std::copy_n(numbers.data() + row * values.columns, values.columns, values.row(row));
}

std::vector<std::vector<float>> Layer::deployed() {
  std::vector<std::vector<float>> numbers;
  for (const Parameter* parameter : parameters()) numbers.push_back(parameter->numbers());
  return numbers;
}

}  // namespace bitfed
