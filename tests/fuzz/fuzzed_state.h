#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "bitfed/base/error.h"
#include "bitfed/model/state.h"

namespace bitfed {

// A State as a text that a fuzzer can change anywhere without breaking lengths and offsets. A line
// "@key value" is a text of the metadata, a line "name F32 3 5" a tensor; after an empty line come the
// tensors' data, zeros once it has run out.
inline std::optional<State> state_from_lines(std::span<const uint8_t> bytes) {
  constexpr uint64_t kMostBytes = 1 << 16;
  constexpr std::array kTypes = {Dtype::kU8,  Dtype::kI32,  Dtype::kU32, Dtype::kF32,
                                 Dtype::kF64, Dtype::kBF16, Dtype::kU16};
  const std::string text(bytes.begin(), bytes.end());
  const size_t middle = text.find("\n\n");
  std::istringstream lines(text.substr(0, middle));
  size_t data = middle == std::string::npos ? text.size() : middle + 2;
  State state("fuzz");
  for (std::string line; std::getline(lines, line);) {
    const size_t space = line.find(' ');
    if (space == std::string::npos) return std::nullopt;
    if (line[0] == '@') {
      state.metadata[line.substr(1, space - 1)] = line.substr(space + 1);
      continue;
    }
    std::istringstream words(line);
    Tensor tensor;
    std::string type;
    words >> tensor.name >> type;
    for (const Dtype known : kTypes) {
      if (dtype_name(known) == type) tensor.dtype = known;
    }
    uint64_t size = dtype_size(tensor.dtype);
    for (uint64_t length = 0; words >> length;) {
      tensor.shape.push_back(length);
      if (__builtin_mul_overflow(size, length, &size) || size > kMostBytes) return std::nullopt;
    }
    if (state.has(tensor.name) || tensor.shape.size() > 16) return std::nullopt;
    for (uint64_t i = 0; i < size; ++i)
      tensor.bytes.push_back(data < text.size() ? static_cast<uint8_t>(text[data++]) : 0);
    state.add(std::move(tensor));
  }
  return state;
}

// What arrives when the bytes are a file or message, or, unless they begin with 0, lines as above.
inline std::optional<State> fuzzed_state(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return std::nullopt;
  try {
    if (bytes[0] == 0) return decode(bytes.subspan(1), "fuzz");
    const std::optional<State> state = state_from_lines(bytes);
    // Texts that are no UTF-8 cannot be written.
    return state ? std::optional(decode(encode(*state), "fuzz")) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  } catch (const nlohmann::json::type_error&) {
    return std::nullopt;
  }
}

// Only what comes from outside may be refused, and in one line.
inline void check_refusal(const Error& error) {
  if (error.kind() != Error::Kind::kInput) __builtin_trap();
  if (std::string_view(error.what()).find('\n') != std::string_view::npos) __builtin_trap();
}

}  // namespace bitfed
