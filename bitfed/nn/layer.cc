#include "bitfed/nn/layer.h"

#include <algorithm>
#include <cassert>

namespace bitfed {

namespace {

void copy_rows(const Matrix& matrix, std::vector<float>* numbers) {
  numbers->clear();
  numbers->reserve(matrix.rows * matrix.columns);
  for (size_t row = 0; row < matrix.rows; ++row)
    numbers->insert(numbers->end(), matrix.row(row), matrix.row(row) + matrix.columns);
}

}  // namespace

std::vector<float> Parameter::numbers() const {
  std::vector<float> result;
  copy_rows(values, &result);
  return result;
}

void Parameter::gradient_numbers(std::vector<float>* numbers) const {
  copy_rows(gradient, numbers);
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
