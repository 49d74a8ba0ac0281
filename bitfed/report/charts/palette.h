#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bitfed {

// A colour by its role. A picture carries the light colour as a plain attribute, so that it looks right
// as a file of its own in any viewer, and the role as a class, through which the page's style sheet
// puts the light or the dark one.
struct Paint {
  std::string_view name;
  std::string_view light;
  std::string_view dark;
};

inline constexpr Paint kPage{"page", "#f4f5f6", "#121518"};
inline constexpr Paint kSurface{"surface", "#ffffff", "#1b1f23"};
inline constexpr Paint kInk{"ink", "#1b1f24", "#e7e9ec"};
inline constexpr Paint kMuted{"muted", "#5c6773", "#9ca6b1"};
inline constexpr Paint kGrid{"grid", "#e2e5e8", "#343a41"};
inline constexpr Paint kAccent{"accent", "#0072b2", "#5aaee8"};
inline constexpr Paint kContrast{"contrast", "#d55e00", "#f08a4b"};
// Text on a strong accent, and on a middling one, which wants dark text in both modes.
inline constexpr Paint kOnAccent{"on-accent", "#ffffff", "#0b1620"};
inline constexpr Paint kOnMiddle{"on-middle", "#101418", "#101418"};

// The colours of lines, after Okabe and Ito ("Color universal design", 2008): distinguishable with every kind
// of colour vision. From the seventh on they repeat, with dashes.
Paint series_paint(size_t index);
std::string_view series_dash(size_t index);

// The text on a cell whose accent has this opacity.
const Paint& paint_on(double opacity);

// The rules that give every role its colours, for the page's style sheet.
std::string palette_css();

}  // namespace bitfed
