#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bitfed {

// The bytes of the UTF-8 character that `text` begins with; 0: there is none. Overlong forms, surrogates and
// values above U+10FFFF are none (RFC 3629, section 4).
size_t character_size(std::string_view text);

// Whether all of it is such characters.
bool is_utf8(std::string_view text);

// Appends the character of a code point, which must be one.
void append_utf8(uint32_t point, std::string* text);

}  // namespace bitfed
