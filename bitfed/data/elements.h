#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace bitfed {

// The values of a data set: a vector, or memory of someone else's that is read where it is, such as a numpy
// array's. Copies share borrowed memory. A change first makes the values a vector.
template <typename T>
class Elements {
 public:
  using value_type = T;
  using const_iterator = const T*;

  Elements() = default;
  Elements(std::vector<T> values) : own_(std::move(values)) {}
  Elements(std::initializer_list<T> values) : own_(values) {}

  // `owner` keeps the memory alive, and unchanged, as long as these elements or a copy of them live.
  static Elements borrowed(std::span<const T> values, std::shared_ptr<const void> owner) {
    Elements elements;
    elements.borrowed_ = values;
    elements.owner_ = std::move(owner);
    return elements;
  }

  const T* data() const { return view().data(); }
  size_t size() const { return view().size(); }
  bool empty() const { return view().empty(); }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size(); }
  const T& operator[](size_t index) const { return data()[index]; }
  bool operator==(const Elements& other) const {
    return std::equal(begin(), end(), other.begin(), other.end());
  }

  // `count` values from `begin` on; borrowed ones stay where they are.
  Elements part(size_t begin, size_t count) const {
    const std::span<const T> values = view().subspan(begin, count);
    return owner_ != nullptr ? borrowed(values, owner_)
                             : Elements(std::vector<T>(values.begin(), values.end()));
  }

  // The values as a vector, to be changed.
  std::vector<T>& own() {
    if (owner_ != nullptr) {
      own_.assign(borrowed_.begin(), borrowed_.end());
      owner_.reset();
    }
    return own_;
  }
  void reserve(size_t size) { own().reserve(size); }
  void resize(size_t size) { own().resize(size); }
  void assign(size_t size, T value) { own().assign(size, value); }
  void push_back(T value) { own().push_back(value); }
  void append(std::span<const T> values) {
    std::vector<T>& mine = own();
    mine.insert(mine.end(), values.begin(), values.end());
  }

 private:
  std::span<const T> view() const { return owner_ != nullptr ? borrowed_ : std::span<const T>(own_); }

  std::vector<T> own_;
  std::span<const T> borrowed_;
  std::shared_ptr<const void> owner_;  // of what is borrowed; null: the values are in own_
};

}  // namespace bitfed
