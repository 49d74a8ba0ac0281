#include "python/src/arrays.h"

#include <nanobind/stl/string.h>

#include <array>
#include <utility>

#include "bitfed/base/error.h"

namespace bitfed::python {
namespace {

// The array types that a state can hold. numpy has no bfloat16: its bits come as uint16.
template <typename Visit>
bool for_type(Dtype dtype, Visit visit) {
  switch (dtype) {
    case Dtype::kU8:
      visit(uint8_t{});
      return true;
    case Dtype::kI8:
      visit(int8_t{});
      return true;
    case Dtype::kU16:
    case Dtype::kBF16:
      visit(uint16_t{});
      return true;
    case Dtype::kI16:
      visit(int16_t{});
      return true;
    case Dtype::kU32:
      visit(uint32_t{});
      return true;
    case Dtype::kI32:
      visit(int32_t{});
      return true;
    case Dtype::kU64:
      visit(uint64_t{});
      return true;
    case Dtype::kI64:
      visit(int64_t{});
      return true;
    case Dtype::kF32:
      visit(float{});
      return true;
    case Dtype::kF64:
      visit(double{});
      return true;
  }
  return false;
}

constexpr std::array kArrayTypes = {Dtype::kU8,  Dtype::kI8,  Dtype::kU16, Dtype::kI16, Dtype::kU32,
                                    Dtype::kI32, Dtype::kU64, Dtype::kI64, Dtype::kF32, Dtype::kF64};

nb::object array_of(const Tensor& tensor) {
  nb::object result;
  const std::vector<size_t> shape(tensor.shape.begin(), tensor.shape.end());
  for_type(tensor.dtype, [&](auto type) {
    using T = decltype(type);
    std::vector<T> values(tensor.bytes.size() / sizeof(T));
    std::copy(tensor.bytes.begin(), tensor.bytes.end(), reinterpret_cast<uint8_t*>(values.data()));
    result = nb::cast(own_array(std::move(values), shape));
  });
  return result;
}

Tensor tensor_of(const std::string& name, const Array& array, std::string_view source) {
  for (const Dtype dtype : kArrayTypes) {
    Tensor tensor{name, dtype, {}, {}};
    for_type(dtype, [&](auto type) {
      if (array.dtype() != nb::dtype<decltype(type)>()) return;
      for (size_t i = 0; i < array.ndim(); ++i) tensor.shape.push_back(array.shape(i));
      const auto* bytes = static_cast<const uint8_t*>(array.data());
      tensor.bytes.assign(bytes, bytes + array.nbytes());
      tensor.name = "";
    });
    if (!tensor.name.empty()) continue;
    tensor.name = name;
    return tensor;
  }
  throw input_error("{}: '{}': found an array of another type, expected integers or floats of 8 to 64 bits",
                    source, name);
}

}  // namespace

SampleView view_samples(const Array& array) {
  if (array.ndim() == 4 && array.dtype() == nb::dtype<uint8_t>()) {
    const SampleShape shape{.height = array.shape(1), .width = array.shape(2), .channels = array.shape(3)};
    return {shape, {static_cast<const uint8_t*>(array.data()), nullptr, array.shape(0)}};
  }
  if (array.ndim() == 2 && array.dtype() == nb::dtype<float>())
    return {{.columns = array.shape(1)}, {nullptr, static_cast<const float*>(array.data()), array.shape(0)}};
  throw input_error(
      "X: found {} dimensions of another type, expected uint8 [samples, rows, columns, channels] or float32 "
      "[samples, columns]",
      array.ndim());
}

nb::object array_of(const Samples& samples, const SampleShape& shape) {
  if (shape.is_table()) {
    return nb::cast(
        own_array(std::vector<float>(samples.values, samples.values + samples.count * shape.columns),
                  {samples.count, shape.columns}));
  }
  return nb::cast(
      own_array(std::vector<uint8_t>(samples.pixels, samples.pixels + samples.count * shape.count()),
                {samples.count, shape.height, shape.width, shape.channels}));
}

nb::object array_of(const Dataset& dataset) {
  return array_of(samples_of(dataset), shape_of(dataset));
}

nb::dict dict_of(const State& state) {
  nb::dict dict;
  for (const auto& [key, text] : state.metadata) dict[key.c_str()] = text;
  for (const Tensor& tensor : state.tensors()) dict[tensor.name.c_str()] = array_of(tensor);
  return dict;
}

State state_of(nb::handle dict, std::string_view source) {
  if (!nb::isinstance<nb::dict>(dict))
    throw input_error("{}: found {}, expected a dictionary of arrays", source,
                      nb::type_name(dict.type()).c_str());
  const nb::object as_array = nb::module_::import_("numpy").attr("ascontiguousarray");
  State state(source);
  for (const auto& [key, value] : nb::borrow<nb::dict>(dict)) {
    const auto name = nb::cast<std::string>(key);
    if (nb::isinstance<nb::str>(value)) {
      state.metadata[name] = nb::cast<std::string>(value);
      continue;
    }
    // ascontiguousarray makes a scalar an array of one value.
    const nb::object shape = nb::module_::import_("numpy").attr("shape")(value);
    state.add(tensor_of(name, nb::cast<Array>(as_array(value).attr("reshape")(shape)), source));
  }
  return state;
}

nb::bytes bytes_of(const Bytes& bytes) {
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::span<const uint8_t> view_bytes(const nb::bytes& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.c_str()), bytes.size()};
}

}  // namespace bitfed::python
