#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bitfed/nn/kernels/matrix.h"

namespace bitfed {

// Rows come in groups of `size`. Only the first `used` rows of a group hold weights; the rest multiply
// padding channels and stay 0.
struct RowGroups {
  size_t size = 1;
  size_t used = 1;
};

// A tensor that training changes: by its gradient, or, if it is a statistic, by a running mean or a search.
struct Parameter {
  Parameter(std::string of, size_t row_count, size_t column_count, bool is_statistic = false,
            const RowGroups& row_groups = {})
      : name(std::move(of)),
        values(row_count, column_count),
        gradient(is_statistic ? Matrix() : Matrix(row_count, column_count)),
        statistic(is_statistic),
        groups(row_groups) {}

  std::string name;
  Matrix values;
  Matrix gradient;  // empty for a statistic
  bool statistic;
  bool decays = false;  // by weight decay: a convolution's weights
  RowGroups groups;
  // Where the layer can: its backward pass takes the step itself, at this rate, and leaves no gradient. A
  // large gradient would be written to memory and read again. 0: it leaves the gradient.
  bool can_step = false;
  float step_rate = 0;

  size_t used_rows() const { return values.rows / groups.size * groups.used; }
  size_t count() const { return used_rows() * values.columns; }
  // Row by row, without padding.
  std::vector<float> to_vector() const;
  void assign(std::span<const float> from);
  void copy_gradient(std::vector<float>* to) const;
  void add_to_gradient(std::span<const float> more);
};

}  // namespace bitfed
