#include "bitfed/report/markup.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

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

// The last `count` characters.
std::string_view last_characters(std::string_view text, size_t count) {
  size_t begin = text.size();
  while (begin > 0 && count > 0) {
    --begin;
    if (!is_continuation(text[begin])) --count;
  }
  return text.substr(begin);
}

std::string cut_middle(std::string_view text, size_t limit) {
  if (character_count(text) <= limit) return std::string(text);
  const size_t tail = limit / 2;
  return shorten(text, limit - tail) + std::string(last_characters(text, tail));
}

std::string cut_beginning(std::string_view text, size_t limit) {
  if (character_count(text) <= limit) return std::string(text);
  return "…" + std::string(last_characters(text, limit - 1));
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

std::string base64(const std::vector<uint8_t>& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? bytes[i + j] : 0u);
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
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

std::vector<std::string> shorten_apart(const std::vector<std::string>& texts, size_t limit) {
  const size_t different = std::set<std::string>(texts.begin(), texts.end()).size();
  const std::array<std::string (*)(std::string_view, size_t), 3> ways = {shorten, cut_middle, cut_beginning};
  for (const auto way : ways) {
    std::vector<std::string> shortened;
    for (const std::string& text : texts) shortened.push_back(way(text, limit));
    if (std::set<std::string>(shortened.begin(), shortened.end()).size() == different) return shortened;
  }
  std::vector<std::string> numbered;
  for (const std::string& text : texts) {
    const std::string number = " " + std::to_string(numbered.size() + 1);
    numbered.push_back(shorten(text, std::max(limit, number.size() + 2) - number.size()) + number);
  }
  return numbered;
}

}  // namespace bitfed
