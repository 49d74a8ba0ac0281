#include "bitfed/nn/layers/layer.h"

#include <algorithm>
#include <cassert>

namespace bitfed {

namespace {

template <typename Body>
void for_each_used_row(const Parameter& parameter, Body body) {
  for (size_t row = 0; row < parameter.values.rows; ++row) {
    if (row % parameter.groups.size < parameter.groups.used) body(row);
  }
}

void copy_rows(const Parameter& parameter, const Matrix& matrix, std::vector<float>* numbers) {
  numbers->clear();
  numbers->reserve(parameter.count());
  for_each_used_row(parameter, [&](size_t row) {
    numbers->insert(numbers->end(), matrix.row(row), matrix.row(row) + matrix.columns);
  });
}

}  // namespace

std::vector<float> Parameter::numbers() const {
  std::vector<float> result;
  copy_rows(*this, values, &result);
  return result;
}

void Parameter::gradient_numbers(std::vector<float>* numbers) const {
  copy_rows(*this, gradient, numbers);
}

void Parameter::assign(std::span<const float> numbers) {
  assert(numbers.size() == count());
  const float* from = numbers.data();
  for_each_used_row(*this, [&](size_t row) {
    std::copy_n(from, values.columns, values.row(row));
    from += values.columns;
  });
}

std::vector<std::vector<float>> Layer::deployed() {
  std::vector<std::vector<float>> numbers;
  for (const Parameter* parameter : parameters()) numbers.push_back(parameter->numbers());
  return numbers;
}

}  // namespace bitfed
