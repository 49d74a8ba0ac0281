#include "bitfed/model/state.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "bitfed/base/hash/digest.h"
#include "bitfed/base/error.h"

namespace bitfed {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are kept and sent in little endian");

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

// Product of the lengths, or nothing where it would not fit.
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
    // Names and shapes are quoted or bracketed, so no two different lists give the same text.
    digest.update(nlohmann::json(tensor.name).dump());
    digest.update(dtype_name(tensor.dtype));
    digest.update(shape_text(tensor.shape));
    digest.update(tensor.bytes);
  }
  return digest.hex();
}

Bytes encode(const State& state) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!state.metadata.empty()) header["__metadata__"] = state.metadata;
  uint64_t offset = 0;
  for (const Tensor& tensor : state.tensors()) {
    header[tensor.name] = {{"dtype", dtype_name(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');

  Bytes bytes;
  bytes.reserve(8 + text.size() + offset);
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(uint64_t{text.size()} >> (8 * i)));
  bytes.insert(bytes.end(), text.begin(), text.end());
  for (const Tensor& tensor : state.tensors())
    bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  return bytes;
}

namespace {

// Larger headers are refused: none of ours comes near, and a hostile one must not cost time.
constexpr uint64_t kMaximumHeaderBytes = 1 << 20;

// A header's fields in the order in which they are written.
struct Header {
  nlohmann::json json;
  std::vector<std::string> names;
};

// Refuses what the format forbids and a JSON library lets pass: names that occur twice, of which all but
// the last would be lost, and nesting beyond {"name": {"shape": [ ... ]}}.
Header parse_header(std::span<const uint8_t> text, std::string_view source) {
  constexpr int kDeepest = 2;
  Header header;
  std::vector<std::set<std::string>> open;  // the names seen so far of each object that has not ended
  const auto check = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if ((event == Event::object_start || event == Event::array_start) && depth > kDeepest) {
      throw input_error("{}: its header is nested deeper than a safetensors header can be", source);
    }
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!open.back().insert(name).second) throw input_error("{}: its header has '{}' twice", source, name);
      if (open.size() == 1) header.names.push_back(name);
    }
    return true;
  };
  header.json = nlohmann::json::parse(text.begin(), text.end(), check, /*allow_exceptions=*/false);
  if (header.json.is_discarded() || !header.json.is_object()) {
    throw input_error("{}: its header is not a JSON object, expected a safetensors file", source);
  }
  return header;
}

std::vector<uint64_t> read_lengths(const nlohmann::json& array, std::string_view source,
                                   const std::string& name, const char* field) {
  std::vector<uint64_t> lengths;
  bool good = array.is_array() && array.size() <= 16;
  for (size_t i = 0; good && i < array.size(); ++i) {
    good = array[i].is_number_unsigned();
    if (good) lengths.push_back(array[i].get<uint64_t>());
  }
  if (!good) {
    throw input_error("{}: tensor '{}': {} is not an array of at most 16 whole numbers", source, name, field);
  }
  return lengths;
}

Dtype read_dtype(const nlohmann::json& field, std::string_view source, const std::string& name) {
  if (field.is_string()) {
    for (const DtypeInfo& known : kDtypes) {
      if (field.get_ref<const std::string&>() == known.name) return known.dtype;
    }
  }
  throw input_error("{}: tensor '{}': found dtype {}, expected U8, I32, F32 or the like", source, name,
                    field.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

struct TensorPlace {
  Tensor tensor;
  uint64_t begin = 0;
  uint64_t end = 0;
};

TensorPlace read_place(const std::string& name, const nlohmann::json& entry, std::string_view source) {
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets")) {
    throw input_error("{}: tensor '{}': expected dtype, shape and data_offsets and nothing else", source,
                      name);
  }
  TensorPlace place;
  place.tensor.name = name;
  place.tensor.dtype = read_dtype(entry["dtype"], source, name);
  place.tensor.shape = read_lengths(entry["shape"], source, name, "shape");
  const std::vector<uint64_t> offsets = read_lengths(entry["data_offsets"], source, name, "data_offsets");
  uint64_t size = 0;
  if (offsets.size() != 2 || offsets[0] > offsets[1] || !multiply(place.tensor.shape, &size) ||
      __builtin_mul_overflow(size, dtype_size(place.tensor.dtype), &size) ||
      offsets[1] - offsets[0] != size) {
    throw input_error("{}: tensor '{}': its data_offsets do not fit {} {}", source, name,
                      dtype_name(place.tensor.dtype), shape_text(place.tensor.shape));
  }
  place.begin = offsets[0];
  place.end = offsets[1];
  return place;
}

void read_metadata(const nlohmann::json& entry, std::string_view source, State* state) {
  if (!entry.is_object()) throw input_error("{}: __metadata__ is not an object of texts", source);
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) throw input_error("{}: __metadata__ '{}' is not a text", source, key);
    state->metadata[key] = value.get<std::string>();
  }
}

}  // namespace

State decode(std::span<const uint8_t> bytes, std::string_view source) {
  ByteReader reader(bytes, source);
  const uint64_t header_bytes = reader.u64_le();
  if (header_bytes > kMaximumHeaderBytes || header_bytes > reader.left()) {
    throw input_error(
        "{}: claims a header of {} bytes, found {} in all: not a safetensors file, or cut short", source,
        header_bytes, bytes.size());
  }
  const Header header = parse_header(reader.take(header_bytes), source);
  State state(source);
  std::vector<TensorPlace> places;
  for (const std::string& name : header.names) {
    if (name == "__metadata__") {
      read_metadata(header.json[name], source, &state);
    } else {
      places.push_back(read_place(name, header.json[name], source));
    }
  }
  // The tensors keep the order of their data, which must follow one another without a gap to the end; empty
  // ones in the same place, that of the header.
  std::stable_sort(places.begin(), places.end(), [](const TensorPlace& a, const TensorPlace& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t offset = 0;
  for (TensorPlace& place : places) {
    if (place.begin != offset) {
      throw input_error("{}: tensor '{}': its data begins at {}, expected {}", source, place.tensor.name,
                        place.begin, offset);
    }
    const auto data = reader.take(place.end - place.begin);
    place.tensor.bytes.assign(data.begin(), data.end());
    offset = place.end;
    state.add(std::move(place.tensor));
  }
  if (reader.left() > 0)
    throw input_error("{}: {} bytes after the last tensor, expected none", source, reader.left());
  return state;
}

State read_state(const std::filesystem::path& path) {
  return decode(read_file(path), path.string());
}

void write_state(const std::filesystem::path& path, const State& state) {
  write_file_atomically(path, encode(state));
}

}  // namespace bitfed
