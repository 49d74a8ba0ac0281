#include "bitfed/model/state.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <limits>
#include <nlohmann/json.hpp>
#include <tuple>

#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/model/safetensors_header.h"

namespace bitfed {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are stored and sent in little endian");

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;
  size_t size;
};

constexpr std::array<DtypeInfo, 11> kDtypes = {{{Dtype::kU8, "U8", 1},
                                                {Dtype::kI8, "I8", 1},
                                                {Dtype::kU16, "U16", 2},
                                                {Dtype::kI16, "I16", 2},
                                                {Dtype::kU32, "U32", 4},
                                                {Dtype::kI32, "I32", 4},
                                                {Dtype::kU64, "U64", 8},
                                                {Dtype::kI64, "I64", 8},
                                                {Dtype::kF32, "F32", 4},
                                                {Dtype::kBF16, "BF16", 2},
                                                {Dtype::kF64, "F64", 8}}};

const DtypeInfo& info(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)];
}

std::string shape_text(const std::vector<uint64_t>& shape) {
  std::string text = "[";
  for (const uint64_t length : shape) {
    if (text.size() > 1) text += ", ";
    text += length == State::kAny ? "any" : std::to_string(length);
  }
  return text + "]";
}

// The product of the lengths; false where it overflows.
bool multiply(const std::vector<uint64_t>& shape, uint64_t* product) {
  *product = 1;
  for (const uint64_t length : shape) {
    if (__builtin_mul_overflow(*product, length, product)) return false;
  }
  return true;
}

}  // namespace

size_t dtype_size(Dtype dtype) {
  return info(dtype).size;
}
std::string_view dtype_name(Dtype dtype) {
  return info(dtype).name;
}

uint64_t Tensor::elements() const {
  return bytes.size() / dtype_size(dtype);
}

// A linear search: states have tens of tensors.
const Tensor* State::find(std::string_view name) const {
  for (const Tensor& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

void State::add(Tensor tensor) {
  uint64_t elements = 0;
  assert(!has(tensor.name));
  assert(multiply(tensor.shape, &elements) && elements == tensor.elements());
  static_cast<void>(elements);
  tensors_.push_back(std::move(tensor));
}

const Tensor& State::expect(std::string_view name, Dtype dtype, const std::vector<uint64_t>& shape) const {
  const Tensor* tensor = find(name);
  if (tensor == nullptr) throw input_error("{}: tensor '{}' is missing", source_, name);
  bool fits = tensor->dtype == dtype && tensor->shape.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = shape[i] == kAny || tensor->shape[i] == shape[i];
  if (!fits) {
    throw input_error("{}: tensor '{}': found {} {}, expected {} {}", source_, name,
                      dtype_name(tensor->dtype), shape_text(tensor->shape), dtype_name(dtype),
                      shape_text(shape));
  }
  return *tensor;
}

const std::string& State::text(const std::string& key) const {
  const auto found = metadata.find(key);
  if (found == metadata.end()) throw input_error("{}: metadata '{}' is missing", source_, key);
  return found->second;
}

uint64_t State::tensor_bytes() const {
  uint64_t total = 0;
  for (const Tensor& tensor : tensors_) total += tensor.bytes.size();
  return total;
}

std::string State::sha256() const {
  Sha256 digest;
  for (const Tensor& tensor : tensors_) {
    // Names and shapes are quoted or bracketed, so that different lists never give the same bytes.
    digest.update(nlohmann::json(tensor.name).dump());
    digest.update(dtype_name(tensor.dtype));
    digest.update(shape_text(tensor.shape));
    digest.update(tensor.bytes);
  }
  return digest.hex();
}

namespace {

struct LastTensor {
  std::string name = {};
  uint64_t bytes = 0;
};

// As JSON. Most names need no escapes; the library, which is slow to write them, gets the others.
void append_quoted(const std::string& name, std::string* text) {
  const bool is_plain = std::all_of(name.begin(), name.end(),
                                    [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  *text += is_plain ? '"' + name + '"' : nlohmann::json(name).dump();
}

void append_entry(const std::string& name, Dtype dtype, const std::vector<uint64_t>& shape, uint64_t begin,
                  uint64_t end, std::string* text) {
  *text += text->size() > 1 ? "," : "";
  append_quoted(name, text);
  *text += ":{\"dtype\":\"";
  *text += dtype_name(dtype);
  *text += "\",\"shape\":[";
  for (size_t i = 0; i < shape.size(); ++i) *text += (i > 0 ? "," : "") + std::to_string(shape[i]);
  *text += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

// With room behind it for so many bytes. Padded with spaces to a multiple of eight bytes, so that the data is
// aligned in a mapped file. Written by hand: of a small model the header is most of the work.
Bytes encode_header(const State& state, const LastTensor* last, uint64_t room) {
  std::string text = "{";
  if (!state.metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : state.metadata) {
      text += text.back() == '{' ? "" : ",";
      append_quoted(key, &text);
      text += ':';
      append_quoted(value, &text);
    }
    text += '}';
  }
  uint64_t offset = 0;
  for (const Tensor& tensor : state.tensors()) {
    append_entry(tensor.name, tensor.dtype, tensor.shape, offset, offset + tensor.bytes.size(), &text);
    offset += tensor.bytes.size();
  }
  if (last != nullptr)
    append_entry(last->name, Dtype::kU8, {last->bytes}, offset, offset + last->bytes, &text);
  text += '}';
  text.append((8 - text.size() % 8) % 8, ' ');

  Bytes bytes;
  bytes.reserve(8 + text.size() + room);
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(uint64_t{text.size()} >> (8 * i)));
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

void write_parts(const std::filesystem::path& path, const State& state, const LastTensor* last,
                 const ByteParts& parts) {
  const Bytes header = encode_header(state, last, 0);
  ByteParts all{header};
  for (const Tensor& tensor : state.tensors()) all.emplace_back(tensor.bytes);
  all.insert(all.end(), parts.begin(), parts.end());
  write_file_atomically(path, all);
}

}  // namespace

Bytes encode(const State& state) {
  Bytes bytes = encode_header(state, nullptr, state.tensor_bytes());
  for (const Tensor& tensor : state.tensors())
    bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  return bytes;
}

uint64_t encoded_size(const State& state) {
  return encode_header(state, nullptr, 0).size() + state.tensor_bytes();
}

namespace {

// Larger headers are refused. Real ones are far smaller, and a hostile one must not cost time.
constexpr uint64_t kMaximumHeaderBytes = 1 << 20;

Dtype find_dtype(const TensorEntry& entry, std::string_view source) {
  for (const DtypeInfo& known : kDtypes) {
    if (entry.dtype == known.name) return known.dtype;
  }
  throw input_error("{}: tensor '{}': found dtype '{}', expected U8, I32, F32 or the like", source,
                    printable_name(entry.name), printable_name(entry.dtype));
}

// A tensor without its data, and the range of its data behind the header.
struct LocatedTensor {
  Tensor tensor;
  uint64_t begin = 0;
  uint64_t end = 0;
};

LocatedTensor locate_tensor(TensorEntry entry, std::string_view source) {
  const Dtype dtype = find_dtype(entry, source);
  const std::vector<uint64_t>& offsets = entry.data_offsets;
  uint64_t size = 0;
  if (offsets.size() != 2 || offsets[0] > offsets[1] || !multiply(entry.shape, &size) ||
      __builtin_mul_overflow(size, dtype_size(dtype), &size) || offsets[1] - offsets[0] != size) {
    throw input_error("{}: tensor '{}': its data_offsets do not fit {} {}", source,
                      printable_name(entry.name), dtype_name(dtype), shape_text(entry.shape));
  }
  return {Tensor{std::move(entry.name), dtype, std::move(entry.shape), {}}, offsets[0], offsets[1]};
}

}  // namespace

State decode(std::span<const uint8_t> bytes, std::string_view source) {
  ByteReader reader(bytes, source);
  const uint64_t header_bytes = reader.u64_le();
  if (header_bytes > kMaximumHeaderBytes || header_bytes > reader.left()) {
    throw input_error(
        "{}: claims a header of {} bytes, found {} in total: not a safetensors file, or truncated", source,
        header_bytes, bytes.size());
  }
  const std::span<const uint8_t> text = reader.take(header_bytes);
  SafetensorsHeader header =
      parse_safetensors_header({reinterpret_cast<const char*>(text.data()), text.size()}, source);
  State state(source);
  state.metadata = std::move(header.metadata);
  std::vector<LocatedTensor> located;
  for (TensorEntry& entry : header.tensors) located.push_back(locate_tensor(std::move(entry), source));
  // Tensors keep the order of their data, which must be contiguous and reach the end. Empty tensors at the
  // same offset keep the order of the header.
  std::stable_sort(located.begin(), located.end(), [](const LocatedTensor& a, const LocatedTensor& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t offset = 0;
  for (LocatedTensor& entry : located) {
    if (entry.begin != offset) {
      throw input_error("{}: tensor '{}': its data begins at {}, expected {}", source,
                        printable_name(entry.tensor.name), entry.begin, offset);
    }
    const auto data = reader.take(entry.end - entry.begin);
    entry.tensor.bytes.assign(data.begin(), data.end());
    offset = entry.end;
    state.add(std::move(entry.tensor));
  }
  if (reader.left() > 0)
    throw input_error("{}: {} bytes after the last tensor, expected none", source, reader.left());
  return state;
}

State read_state(const std::filesystem::path& path) {
  return decode(read_file(path), path.string());
}

void write_state(const std::filesystem::path& path, const State& state) {
  write_parts(path, state, nullptr, {});
}

void write_state(const std::filesystem::path& path, const State& state, const std::string& name,
                 const ByteParts& parts) {
  LastTensor last{name};
  for (const auto part : parts) last.bytes += part.size();
  write_parts(path, state, &last, parts);
}

}  // namespace bitfed
