#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bitfed {

// Text from outside as content or attribute of HTML and XML: the five special characters become
// entities; bytes that are not UTF-8, and control characters that XML forbids, become U+FFFD.
std::string escape_markup(std::string_view text);

// Bytes in base64 (RFC 4648), for data: addresses.
std::string base64(const std::vector<uint8_t>& bytes);

// Characters (code points) of a UTF-8 string: its length in aligned columns and labels.
size_t character_count(std::string_view text);

// At most `limit` characters, the last one an ellipsis where something was cut.
std::string shorten(std::string_view text, size_t limit);

// All of them shortened, so that different texts stay different: where their beginnings are the same the
// middle is cut, or the beginning; where that does not tell them apart either, they are numbered.
std::vector<std::string> shorten_apart(const std::vector<std::string>& texts, size_t limit);

}  // namespace bitfed
