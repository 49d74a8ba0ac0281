#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "bitfed/nn/kernels.h"

namespace bitfed {

// Floats aligned for the kernels, their number padded to whole lanes; zeros at first.
class Floats {
 public:
  explicit Floats(size_t count = 0) : count_(padded(count)), values_(allocate(count_)) {}
  Floats(const Floats& other) : Floats(other.count_) { copy_from(other.data()); }
  Floats& operator=(const Floats& other) {
    if (this != &other) *this = Floats(other);
    return *this;
  }
  Floats(Floats&&) noexcept = default;
  Floats& operator=(Floats&&) noexcept = default;
  ~Floats() = default;

  size_t size() const { return count_; }
  float* data() { return values_.get(); }
  const float* data() const { return values_.get(); }
  float& operator[](size_t i) { return values_[i]; }
  float operator[](size_t i) const { return values_[i]; }
  void clear() {
    for (size_t i = 0; i < count_; ++i) values_[i] = 0;
  }

 private:
  struct Free {
    void operator()(float* values) const { ::operator delete[](values, std::align_val_t{64}); }
  };
  static float* allocate(size_t count) { return new (std::align_val_t{64}) float[count](); }
  void copy_from(const float* values) {
    for (size_t i = 0; i < count_; ++i) values_[i] = values[i];
  }

  size_t count_;
  std::unique_ptr<float[], Free> values_;
};

// Rows of floats, each padded to whole lanes.
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
