#include "bitfed/report/markup.h"

#include <algorithm>
#include <cstdint>

namespace bitfed {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_continuation(char byte) {
  return (static_cast<uint8_t>(byte) & 0xC0) == 0x80;
}

// Bytes of the sequence that begins `text`, 0 where it is not a valid one (RFC 3629, table 3-7 of the
// Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF).
size_t sequence_length(std::string_view text) {
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  if (!std::all_of(text.begin() + 1, text.begin() + static_cast<std::ptrdiff_t>(length), is_continuation))
    return 0;
  const auto second = static_cast<uint8_t>(text[1]);
  if (first == 0xE0 && second < 0xA0) return 0;
  if (first == 0xED && second > 0x9F) return 0;
  if (first == 0xF0 && second < 0x90) return 0;
  if (first == 0xF4 && second > 0x8F) return 0;
  return length;
}

std::string_view escaped_byte(const char& byte) {
  switch (byte) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      break;
  }
  const auto code = static_cast<uint8_t>(byte);
  const bool forbidden = (code < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || code == 0x7F;
  return forbidden ? kReplacement : std::string_view(&byte, 1);
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = sequence_length(text.substr(i));
    // U+FFFE and U+FFFF are valid UTF-8 and no characters of XML.
    const bool noncharacter = length == 3 && text.substr(i, 2) == "\xEF\xBF" && text[i + 2] >= '\xBE';
    if (length == 0 || noncharacter) {
      escaped += kReplacement;
    } else {
      escaped += length == 1 ? escaped_byte(text[i]) : text.substr(i, length);
    }
    i += std::max<size_t>(length, 1);
  }
  return escaped;
}

size_t character_count(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

std::string shorten(std::string_view text, size_t limit) {
  if (limit == 0 || character_count(text) <= limit) return std::string(text);
  size_t end = 0;
  for (size_t characters = 0; end < text.size(); ++end) {
    if (!is_continuation(text[end]) && ++characters == limit) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace bitfed
