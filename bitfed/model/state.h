#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bitfed/base/byte_io.h"

namespace bitfed {

enum class Dtype { kU8, kI8, kU16, kI16, kU32, kI32, kU64, kI64, kF32, kBF16, kF64 };

size_t dtype_size(Dtype dtype);
std::string_view dtype_name(Dtype dtype);  // as safetensors writes it: "U8", "BF16" …

template <typename T>
struct DtypeOf;
template <>
struct DtypeOf<uint8_t> {
  static constexpr Dtype value = Dtype::kU8;
};
template <>
struct DtypeOf<int8_t> {
  static constexpr Dtype value = Dtype::kI8;
};
template <>
struct DtypeOf<uint16_t> {
  static constexpr Dtype value = Dtype::kU16;
};
template <>
struct DtypeOf<int16_t> {
  static constexpr Dtype value = Dtype::kI16;
};
template <>
struct DtypeOf<uint32_t> {
  static constexpr Dtype value = Dtype::kU32;
};
template <>
struct DtypeOf<int32_t> {
  static constexpr Dtype value = Dtype::kI32;
};
template <>
struct DtypeOf<uint64_t> {
  static constexpr Dtype value = Dtype::kU64;
};
template <>
struct DtypeOf<int64_t> {
  static constexpr Dtype value = Dtype::kI64;
};
template <>
struct DtypeOf<float> {
  static constexpr Dtype value = Dtype::kF32;
};
template <>
struct DtypeOf<double> {
  static constexpr Dtype value = Dtype::kF64;
};

struct Tensor {
  std::string name;
  Dtype dtype = Dtype::kU8;
  std::vector<uint64_t> shape;  // empty: a scalar
  Bytes bytes;                  // little endian, row major

  uint64_t elements() const;
  bool operator==(const Tensor&) const = default;
};

// Ordered named tensors and string metadata. Everything that leaves a process (an upload, a broadcast, a
// model, a checkpoint) is a State, and encode() is its only codec: the safetensors format.
class State {
 public:
  State() = default;
  // `source` (a file, a client) is named in errors about missing or wrong content.
  explicit State(std::string_view source) : source_(source) {}

  std::map<std::string, std::string> metadata;

  const std::string& source() const { return source_; }
  void set_source(std::string_view source) { source_ = source; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  bool empty() const { return tensors_.empty() && metadata.empty(); }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  void add(Tensor tensor);  // the name must be new

  template <typename T>
  void add(std::string name, std::vector<uint64_t> shape, std::span<const T> values) {
    const auto* first = reinterpret_cast<const uint8_t*>(values.data());
    add(Tensor{std::move(name), DtypeOf<T>::value, std::move(shape),
               Bytes(first, first + values.size_bytes())});
  }
  template <typename T>
  void add(std::string name, std::vector<uint64_t> shape, const std::vector<T>& values) {
    add(std::move(name), std::move(shape), std::span<const T>(values));
  }
  template <typename T>
  void add_scalar(std::string name, T value) {
    add(std::move(name), {}, std::span<const T>(&value, 1));
  }

  // The values of a tensor that must exist with this type and shape; kAny in `shape` matches any length.
  // Otherwise an input_error that names the tensor, what was found and what was expected.
  static constexpr uint64_t kAny = ~uint64_t{0};
  template <typename T>
  std::vector<T> values(std::string_view name, const std::vector<uint64_t>& shape) const {
    const Tensor& tensor = expect(name, DtypeOf<T>::value, shape);
    std::vector<T> result(tensor.bytes.size() / sizeof(T));
    if (!result.empty())
      std::copy(tensor.bytes.begin(), tensor.bytes.end(), reinterpret_cast<uint8_t*>(result.data()));
    return result;
  }
  // The same where they lie: valid as long as the state is.
  template <typename T>
  std::span<const T> view(std::string_view name, const std::vector<uint64_t>& shape) const {
    const Tensor& tensor = expect(name, DtypeOf<T>::value, shape);
    return {reinterpret_cast<const T*>(tensor.bytes.data()), tensor.bytes.size() / sizeof(T)};
  }
  // The same, as bytes: for types that C++ does not have.
  const Tensor& expect(std::string_view name, Dtype dtype, const std::vector<uint64_t>& shape) const;
  template <typename T>
  T scalar(std::string_view name) const {
    return values<T>(name, {})[0];
  }
  // A metadata value that must exist.
  const std::string& text(const std::string& key) const;

  uint64_t tensor_bytes() const;

  // The digest of the tensors (names, types, shapes, values), without the metadata: two models are the same
  // if and only if their digests are.
  std::string sha256() const;

  bool operator==(const State& other) const {
    return metadata == other.metadata && tensors_ == other.tensors_;
  }

 private:
  const Tensor* find(std::string_view name) const;

  std::string source_ = "state";
  std::vector<Tensor> tensors_;
};

// The codec. decode() takes untrusted bytes; `source` is named in its errors.
Bytes encode(const State& state);
uint64_t encoded_size(const State& state);  // encode(state).size(), without the copy
State decode(std::span<const uint8_t> bytes, std::string_view source);

State read_state(const std::filesystem::path& path);
void write_state(const std::filesystem::path& path, const State& state);
// With one more tensor of bytes behind the others: those of the parts, one after the other, which may be too
// large to be copied together.
void write_state(const std::filesystem::path& path, const State& state, const std::string& name,
                 const ByteParts& parts);

}  // namespace bitfed
