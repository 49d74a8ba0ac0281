#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bitfed {

// Text from outside as content or attribute of HTML and XML: the five special characters become
// entities; bytes that are not UTF-8, and control characters that XML forbids, become U+FFFD.
std::string escape_markup(std::string_view text);

// Characters (code points) of a UTF-8 string: its length in aligned columns and labels.
size_t character_count(std::string_view text);

// At most `limit` characters, the last one an ellipsis where something was cut.
std::string shorten(std::string_view text, size_t limit);

}  // namespace bitfed
