#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bitfed {

// "did you mean …?" for a mistyped name: the nearest of `known`, or "" where none is near.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

// " (did you mean 'x'?)", or " (known: a, b, c)" where nothing is near, or "" where nothing is known: the
// tail of an error's text.
std::string suggestion(std::string_view name, std::span<const std::string> known);

// All of them with a separator between. (fmt::join would bring 10 KB of templates to a device.)
std::string joined(std::span<const std::string> names, std::string_view separator = ", ");

}  // namespace bitfed
