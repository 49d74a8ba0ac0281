#include "bitfed/data/formats/mat.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "bitfed/base/error.h"
#include "bitfed/data/formats/zlib_stream.h"

namespace bitfed {
namespace {

constexpr size_t kHeaderBytes = 128;
constexpr uint64_t kMaximumUnpackedBytes = uint64_t{2} << 30;  // all variables of a file together

// Types of data elements (table 1-1 of the specification) and classes of arrays (table 1-3).
enum : uint32_t {
  kInt8 = 1,
  kUint8 = 2,
  kInt16 = 3,
  kUint16 = 4,
  kInt32 = 5,
  kUint32 = 6,
  kSingle = 7,
  kDouble = 9,
  kMatrix = 14,
  kCompressed = 15,
};
constexpr uint32_t kClassDouble = 6;
constexpr uint32_t kClassUint32 = 13;
constexpr uint32_t kComplexFlag = 0x0800;

struct Element {
  uint32_t type = 0;
  std::span<const uint8_t> bytes;
};

// A tag and its data. Data of at most four bytes may be stored in the tag itself, whose upper half is then
// their size; other data are padded to a multiple of eight bytes, except compressed data.
Element take_element(ByteReader& reader) {
  const uint32_t first = reader.u32_le();
  if (first >> 16 != 0) {
    const uint32_t size = first >> 16;
    const auto data = reader.take(4);
    // A size above four contradicts the layout; as an empty element it fails where it is used.
    return {first & 0xffff, data.first(size <= 4 ? size : 0)};
  }
  const uint32_t size = reader.u32_le();
  const Element element{first, reader.take(size)};
  const size_t padding = first == kCompressed ? 0 : (8 - size % 8) % 8;
  reader.take(std::min(padding, reader.left()));
  return element;
}

Element take_element(ByteReader& reader, uint32_t type, std::string_view what, std::string_view name) {
  const Element element = take_element(reader);
  if (element.type == type) return element;
  throw input_error("{}: {} is stored as type {}, expected {}", name, what, element.type, type);
}

// MATLAB stores arrays in the smallest type that fits, or as doubles.
template <typename T>
Bytes to_bytes(std::span<const uint8_t> stored, std::string_view what, std::string_view name) {
  static_assert(std::endian::native == std::endian::little);
  Bytes result(stored.size() / sizeof(T));
  for (size_t i = 0; i < result.size(); ++i) {
    T value;
    std::memcpy(&value, stored.data() + i * sizeof(T), sizeof(T));
    const auto number = static_cast<double>(value);
    if (!(number >= 0 && number <= 255) || number != std::floor(number)) {
      throw input_error("{}: value {} of variable {} is {}, expected a whole number from 0 to 255", name, i,
                        what, number);
    }
    result[i] = static_cast<uint8_t>(number);
  }
  return result;
}

size_t storage_size(uint32_t type) {
  switch (type) {
    case kInt8:
    case kUint8:
      return 1;
    case kInt16:
    case kUint16:
      return 2;
    case kInt32:
    case kUint32:
    case kSingle:
      return 4;
    case kDouble:
      return 8;
    default:
      return 0;
  }
}

// `storage`, unless it is empty, holds the element, and nothing else is read from it any more.
Bytes convert(const Element& data, Bytes storage, std::string_view what, std::string_view name) {
  switch (data.type) {
    case kUint8: {
      if (storage.empty()) return {data.bytes.begin(), data.bytes.end()};
      // Not copied: large arrays would take their memory twice.
      const auto begin = data.bytes.data() - storage.data();
      storage.resize(static_cast<size_t>(begin) + data.bytes.size());
      storage.erase(storage.begin(), storage.begin() + begin);
      return storage;
    }
    case kInt8:
      return to_bytes<int8_t>(data.bytes, what, name);
    case kInt16:
      return to_bytes<int16_t>(data.bytes, what, name);
    case kUint16:
      return to_bytes<uint16_t>(data.bytes, what, name);
    case kInt32:
      return to_bytes<int32_t>(data.bytes, what, name);
    case kUint32:
      return to_bytes<uint32_t>(data.bytes, what, name);
    case kSingle:
      return to_bytes<float>(data.bytes, what, name);
    default:
      return to_bytes<double>(data.bytes, what, name);
  }
}

std::vector<uint64_t> take_dimensions(ByteReader& reader, std::string_view name) {
  const Element element = take_element(reader, kInt32, "an array's dimensions", name);
  if (element.bytes.size() < 8 || element.bytes.size() > 32 || element.bytes.size() % 4 != 0) {
    throw input_error("{}: an array's dimensions take {} bytes, expected 2 to 8 of 4 bytes", name,
                      element.bytes.size());
  }
  ByteReader values(element.bytes, name);
  std::vector<uint64_t> dimensions;
  while (values.left() > 0) dimensions.push_back(values.u32_le());
  return dimensions;
}

// The dimensions must account for exactly the stored bytes; nothing is allocated before.
void check_size(const MatArray& array, const Element& data, std::string_view name) {
  const size_t width = storage_size(data.type);
  if (width == 0)
    throw input_error("{}: variable {} is stored as type {}, expected numbers", name, array.name, data.type);
  uint64_t expected = width;
  for (const uint64_t dimension : array.dimensions) {
    // Both factors are at most 2^32 and one is below it: no overflow. Data never take 2^32 bytes.
    expected = std::min(expected * dimension, uint64_t{1} << 32);
    if (expected == 0) break;
  }
  if (expected != data.bytes.size()) {
    throw input_error("{}: the dimensions of variable {} make {} bytes, {} are stored", name, array.name,
                      expected, data.bytes.size());
  }
}

// A variable (the content of a matrix element), or nothing if it is not in `wanted`. `storage`: of the bytes,
// empty if they are the file's.
std::optional<MatArray> parse_matrix(std::span<const uint8_t> bytes, Bytes storage, std::string_view name,
                                     std::span<const std::string> wanted) {
  ByteReader reader(bytes, name);
  const Element flags = take_element(reader, kUint32, "an array's flags", name);
  if (flags.bytes.size() != 8)
    throw input_error("{}: an array's flags take {} bytes, expected 8", name, flags.bytes.size());
  const uint32_t word = ByteReader(flags.bytes, name).u32_le();
  MatArray array;
  array.dimensions = take_dimensions(reader, name);
  const Element text = take_element(reader, kInt8, "a variable's name", name);
  array.name.assign(text.bytes.begin(), text.bytes.end());
  if (std::find(wanted.begin(), wanted.end(), array.name) == wanted.end()) return std::nullopt;
  const uint32_t kind = word & 0xff;
  if (kind < kClassDouble || kind > kClassUint32 || (word & kComplexFlag) != 0) {
    throw input_error("{}: variable {} is of class {}, expected a real numeric array", name, array.name,
                      kind);
  }
  const Element data = take_element(reader);
  check_size(array, data, name);
  if (reader.left() != 0)
    throw input_error("{}: {} bytes follow the values of variable {}", name, reader.left(), array.name);
  array.values = convert(data, std::move(storage), array.name, name);
  return array;
}

// Of an element with its tag.
uint64_t claimed_size(std::span<const uint8_t> first) {
  ByteReader reader(first, "");
  reader.take(4);
  return uint64_t{reader.u32_le()} + 8;
}

// 124 bytes of text, then the version (0x0100) and "IM", which a big-endian writer stores as "MI".
void check_header(std::span<const uint8_t> bytes, std::string_view name) {
  if (bytes.size() < kHeaderBytes)
    throw input_error("{}: {} bytes, expected a MATLAB 5 file", name, bytes.size());
  const std::string_view endian(reinterpret_cast<const char*>(bytes.data()) + 126, 2);
  if (endian == "MI") throw input_error("{}: is a big-endian MATLAB file, expected little endian", name);
  if (endian != "IM") throw input_error("{}: has no MATLAB 5 header", name);
  if (bytes[125] == 2)
    throw input_error("{}: is a MATLAB 7.3 (HDF5) file, expected MATLAB 5 (save with -v7)", name);
  if (bytes[125] != 1 || bytes[124] != 0) {
    throw input_error("{}: MATLAB file version {:#06x}, expected 0x0100", name, bytes[125] << 8 | bytes[124]);
  }
}

}  // namespace

std::vector<MatArray> parse_mat(std::span<const uint8_t> bytes, std::string_view name,
                                std::span<const std::string> wanted) {
  check_header(bytes, name);
  ByteReader reader(bytes.subspan(kHeaderBytes), name);
  uint64_t budget = kMaximumUnpackedBytes;  // a small file must not unpack to more memory than this
  std::vector<MatArray> arrays;
  while (reader.left() > 0) {
    Element element = take_element(reader);
    Bytes storage;
    if (element.type == kCompressed) {
      storage = unzlib(element.bytes, name, budget, claimed_size);
      budget -= storage.size();
      ByteReader inner(storage, name);
      element = take_element(inner);
      if (inner.left() != 0)
        throw input_error("{}: {} bytes follow a compressed variable", name, inner.left());
    }
    if (element.type != kMatrix)
      throw input_error("{}: holds an element of type {}, expected variables", name, element.type);
    auto array = parse_matrix(element.bytes, std::move(storage), name, wanted);
    if (!array) continue;
    for (const MatArray& other : arrays) {
      if (other.name == array->name) throw input_error("{}: variable {} occurs twice", name, array->name);
    }
    arrays.push_back(std::move(*array));
  }
  return arrays;
}

}  // namespace bitfed
