#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bitfed/data/dataset.h"
#include "bitfed/data/samples.h"
#include "bitfed/model/state.h"

namespace bitfed::python {

namespace nb = nanobind;

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Labels = nb::ndarray<const uint16_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Groups = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Samples where the array has them: nothing is copied, and the array must outlive the view.
struct SampleView {
  SampleShape shape;
  Samples samples;
};

// Bytes [samples, rows, columns, channels] or floats [samples, columns]; anything else is an input_error.
SampleView view_samples(const Array& array);

inline std::span<const uint16_t> view_labels(const Labels& labels) {
  return {labels.data(), labels.shape(0)};
}

// An array that owns the vector's memory.
template <typename T>
nb::ndarray<nb::numpy, T> own_array(std::vector<T> values, std::vector<size_t> shape) {
  auto* moved = new std::vector<T>(std::move(values));
  const nb::capsule owner(moved, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(moved->data(), shape.size(), shape.data(), owner);
}

// The samples of a data set as an array of its own, in the shape of view_samples.
nb::object array_of(const Dataset& dataset);
nb::object array_of(const Samples& samples, const SampleShape& shape);

// A state as a dictionary of arrays, with its metadata as strings; and back, from anything that numpy takes
// for an array.
nb::dict dict_of(const State& state);
State state_of(nb::handle dict, std::string_view source);

nb::bytes bytes_of(const Bytes& bytes);
std::span<const uint8_t> view_bytes(const nb::bytes& bytes);

}  // namespace bitfed::python
