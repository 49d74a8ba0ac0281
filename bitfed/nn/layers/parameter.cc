#include "bitfed/nn/layers/parameter.h"

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

void copy_rows(const Parameter& parameter, const Matrix& from, std::vector<float>* to) {
  to->clear();
  to->reserve(parameter.count());
  for_each_used_row(parameter,
                    [&](size_t row) { to->insert(to->end(), from.row(row), from.row(row) + from.columns); });
}

}  // namespace

std::vector<float> Parameter::to_vector() const {
  std::vector<float> result;
  copy_rows(*this, values, &result);
  return result;
}

void Parameter::copy_gradient(std::vector<float>* to) const {
  copy_rows(*this, gradient, to);
}

void Parameter::assign(std::span<const float> from) {
  assert(from.size() == count());
  for_each_used_row(*this, [&](size_t row) {
    std::copy_n(from.data(), values.columns, values.row(row));
    from = from.subspan(values.columns);
  });
}

void Parameter::add_to_gradient(std::span<const float> more) {
  assert(more.size() == count() && !statistic);
  for_each_used_row(*this, [&](size_t row) {
    float* sums = gradient.row(row);
    for (size_t i = 0; i < gradient.columns; ++i) sums[i] += more[i];
    more = more.subspan(gradient.columns);
  });
}

}  // namespace bitfed
