#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "bitfed/nn/kernels/kernels.h"

namespace bitfed {

// An array aligned for the kernels, its size padded to kLanes; zeros at first.
template <typename Number>
class Aligned {
 public:
  explicit Aligned(size_t count = 0) : count_(padded(count)), values_(allocate(count_)) {}
  Aligned(const Aligned& other) : Aligned(other.count_) { copy_from(other.data()); }
  Aligned& operator=(const Aligned& other) {
    if (this != &other) *this = Aligned(other);
    return *this;
  }
  Aligned(Aligned&&) noexcept = default;
  Aligned& operator=(Aligned&&) noexcept = default;
  ~Aligned() = default;

  size_t size() const { return count_; }
  Number* data() { return values_.get(); }
  const Number* data() const { return values_.get(); }
  Number& operator[](size_t i) { return values_[i]; }
  Number operator[](size_t i) const { return values_[i]; }
  void clear() {
    for (size_t i = 0; i < count_; ++i) values_[i] = 0;
  }

 private:
  struct Free {
    void operator()(Number* values) const { ::operator delete[](values, std::align_val_t{64}); }
  };
  static Number* allocate(size_t count) { return new (std::align_val_t{64}) Number[count](); }
  void copy_from(const Number* values) {
    for (size_t i = 0; i < count_; ++i) values_[i] = values[i];
  }

  size_t count_;
  std::unique_ptr<Number[], Free> values_;
};

using Floats = Aligned<float>;
using Shorts = Aligned<int16_t>;

// Rows of floats, each padded to kLanes.
struct Matrix {
  Matrix() = default;
  Matrix(size_t row_count, size_t column_count)
      : rows(row_count),
        columns(column_count),
        stride(padded(column_count)),
        values(row_count * padded(column_count)) {}

  float* row(size_t r) { return values.data() + r * stride; }
  const float* row(size_t r) const { return values.data() + r * stride; }

  size_t rows = 0;
  size_t columns = 0;
  size_t stride = 0;
  Floats values;
};

}  // namespace bitfed
