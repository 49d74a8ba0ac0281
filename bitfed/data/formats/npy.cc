#include "bitfed/data/formats/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "bitfed/base/error.h"
#include "bitfed/data/formats/zip.h"

namespace bitfed {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaximumHeader = 65536;
constexpr size_t kMaximumDimensions = 8;
constexpr size_t kMaximumTextBytes = 4096;

// The value of a key in the header's dictionary, up to where the next key may begin.
std::string_view header_value(std::string_view header, std::string_view key, std::string_view name) {
  const std::string quoted = fmt::format("'{}':", key);
  const size_t at = header.find(quoted);
  if (at == std::string_view::npos) throw input_error("{}: header: '{}' is missing", name, key);
  std::string_view value = header.substr(at + quoted.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  return value;
}

// "'<f4'" to kind and size.
void read_type(std::string_view text, std::string_view name, NpyArray* array) {
  const size_t end = text.starts_with('\'') ? text.find('\'', 1) : std::string_view::npos;
  if (end == std::string_view::npos)
    throw input_error("{}: header: descr: found a structured type, expected a plain one such as '<f4'", name);
  const std::string_view type = text.substr(1, end - 1);
  if (type.find('O') != std::string_view::npos)
    throw input_error("{}: holds pickled Python objects ('{}'), expected numbers or strings: astype(str)",
                      name, type);
  size_t bytes = 0;
  const bool is_whole =
      type.size() >= 3 &&
      std::from_chars(type.data() + 2, type.data() + type.size(), bytes).ptr == type.data() + type.size();
  if (is_whole && type[0] == '>')
    throw input_error("{}: header: descr: found '{}' (big endian), expected little endian", name, type);
  const char kind = is_whole ? type[1] : '?';
  const bool is_integer =
      (kind == 'u' || kind == 'i') && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
  const bool is_float = kind == 'f' && (bytes == 4 || bytes == 8);
  const bool is_text =
      (kind == 'U' && bytes <= kMaximumTextBytes / 4) || (kind == 'S' && bytes <= kMaximumTextBytes);
  if (!is_integer && !is_float && !is_text && !(kind == 'b' && bytes == 1)) {
    throw input_error(
        "{}: header: descr: found '{}', expected integers, floats of 4 or 8 bytes, booleans or strings", name,
        type);
  }
  array->kind = kind;
  array->item_bytes = kind == 'U' ? 4 * bytes : bytes;
}

// "(60000, 28, 28)".
std::vector<uint64_t> read_shape(std::string_view text, std::string_view name) {
  const size_t close = text.find(')');
  if (!text.starts_with('(') || close == std::string_view::npos)
    throw input_error("{}: header: shape: expected numbers in parentheses", name);
  std::vector<uint64_t> shape;
  for (const char* at = text.data() + 1; at < text.data() + close;) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    uint64_t side = 0;
    const auto [end, code] = std::from_chars(at, text.data() + close, side);
    if (code != std::errc() || shape.size() == kMaximumDimensions)
      throw input_error("{}: header: shape: expected at most {} numbers", name, kMaximumDimensions);
    shape.push_back(side);
    at = end;
  }
  return shape;
}

// The product of the sides times the size of a value must be what follows; it may not overflow on the way.
void check_size(const NpyArray& array, size_t left, std::string_view name) {
  uint64_t expected = array.item_bytes;
  bool is_possible = true;
  for (const uint64_t side : array.shape) {
    is_possible = is_possible && (side == 0 || expected <= kMaximumFileBytes / side);
    expected = is_possible ? expected * side : 0;
  }
  if (is_possible && expected == left) return;
  std::string shape;
  for (const uint64_t side : array.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(side);
  throw input_error("{}: its header says {} values of {} bytes, {} bytes follow", name,
                    shape.empty() ? "1" : shape, array.item_bytes, left);
}

// From column-major to row-major.
Bytes transposed(std::span<const uint8_t> values, const std::vector<uint64_t>& shape, size_t item) {
  Bytes result(values.size());
  std::vector<uint64_t> at(shape.size());
  for (size_t from = 0; from < values.size(); from += item) {
    uint64_t to = 0;
    for (size_t i = 0; i < shape.size(); ++i) to = to * shape[i] + at[i];
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(from), item,
                result.begin() + static_cast<std::ptrdiff_t>(to * item));
    for (size_t i = 0; i < shape.size() && ++at[i] == shape[i]; ++i) at[i] = 0;
  }
  return result;
}

template <typename T>
T value_at(const Bytes& values, size_t index) {
  T value;
  std::memcpy(&value, values.data() + index * sizeof(T), sizeof(T));
  return value;
}

void append_utf8(uint32_t code, std::string* text) {
  const auto byte = [&](uint32_t value) { text->push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6);
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

}  // namespace

double NpyArray::number(size_t index) const {
  const bool is_signed = kind == 'i';
  if (kind == 'f') return item_bytes == 4 ? value_at<float>(values, index) : value_at<double>(values, index);
  switch (item_bytes) {
    case 1:
      return is_signed ? value_at<int8_t>(values, index) : value_at<uint8_t>(values, index);
    case 2:
      return is_signed ? value_at<int16_t>(values, index) : value_at<uint16_t>(values, index);
    case 4:
      return is_signed ? value_at<int32_t>(values, index) : value_at<uint32_t>(values, index);
    default:
      return is_signed ? static_cast<double>(value_at<int64_t>(values, index))
                       : static_cast<double>(value_at<uint64_t>(values, index));
  }
}

std::string NpyArray::text(size_t index) const {
  if (kind == 'i' && item_bytes == 8) return std::to_string(value_at<int64_t>(values, index));
  if (kind == 'u' && item_bytes == 8) return std::to_string(value_at<uint64_t>(values, index));
  if (!is_text()) {
    const double value = number(index);
    if (kind == 'b') return value == 0 ? "False" : "True";
    const bool is_whole = std::fabs(value) < 1e15 && value == std::floor(value);
    return is_whole ? fmt::format("{}", static_cast<int64_t>(value)) : fmt::format("{}", value);
  }
  std::string text;
  for (size_t i = 0; kind == 'U' && i < item_bytes / 4; ++i) {
    const auto code = value_at<uint32_t>(values, index * item_bytes / 4 + i);
    // What is no character becomes U+FFFD.
    append_utf8(code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? 0xFFFD : code, &text);
  }
  for (size_t i = 0; kind == 'S' && i < item_bytes; ++i) {
    append_utf8(values[index * item_bytes + i], &text);  // as Latin-1
  }
  text.resize(text.find_last_not_of('\0') + 1);  // strings are padded with zeros
  return text;
}

NpyArray parse_npy(std::span<const uint8_t> bytes, std::string_view name) {
  if (bytes.size() < 10 || !std::equal(kMagic.begin(), kMagic.end(), bytes.begin(),
                                       [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; })) {
    throw input_error("{}: does not begin as a NumPy array (\\x93NUMPY)", name);
  }
  ByteReader reader(bytes.subspan(kMagic.size()), name);
  const uint8_t version = reader.u8();
  reader.u8();
  if (version < 1 || version > 3)
    throw input_error("{}: found version {} of the NumPy format, expected 1 to 3", name, version);
  const size_t header_bytes = version == 1 ? reader.u16_le() : reader.u32_le();
  if (header_bytes > kMaximumHeader || header_bytes > reader.left())
    throw input_error("{}: its header says {} bytes, {} follow", name, header_bytes, reader.left());
  const auto taken = reader.take(header_bytes);
  const std::string header(taken.begin(), taken.end());
  NpyArray array;
  read_type(header_value(header, "descr", name), name, &array);
  const bool is_fortran = header_value(header, "fortran_order", name).starts_with("True");
  array.shape = read_shape(header_value(header, "shape", name), name);
  check_size(array, reader.left(), name);
  const auto values = reader.take(reader.left());
  if (is_fortran && array.shape.size() > 1 && array.item_bytes > 0) {
    array.values = transposed(values, array.shape, array.item_bytes);
  } else {
    array.values.assign(values.begin(), values.end());
  }
  return array;
}

std::vector<NamedArray> parse_npz(std::span<const uint8_t> bytes, std::string_view name) {
  std::vector<NamedArray> arrays;
  for (const ZipFile& file : parse_zip(bytes, name)) {
    if (!file.name.ends_with(".npy"))
      throw input_error("{}: holds '{}', expected arrays (.npy)", name, file.name);
    NamedArray array{file.name.substr(0, file.name.size() - 4),
                     parse_npy(file.content, fmt::format("{}: {}", name, file.name))};
    if (std::any_of(arrays.begin(), arrays.end(),
                    [&](const NamedArray& other) { return other.name == array.name; }))
      throw input_error("{}: holds '{}' twice, expected it once", name, file.name);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

}  // namespace bitfed
