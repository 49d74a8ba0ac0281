#include "bitfed/report/charts/palette.h"

#include <fmt/format.h>

#include <array>

namespace bitfed {
namespace {

constexpr std::array kSeries = {
    Paint{"series-1", "#0072b2", "#5aaee8"}, Paint{"series-2", "#d55e00", "#f08a4b"},
    Paint{"series-3", "#009e73", "#3ccfa4"}, Paint{"series-4", "#b5558c", "#e29cc6"},
    Paint{"series-5", "#b07a00", "#f0b94d"}, Paint{"series-6", "#3fa0da", "#a5dcfa"},
};

constexpr std::array kRoles = {kPage,   kSurface,  kInk,      kMuted,   kGrid,
                               kAccent, kContrast, kOnAccent, kOnMiddle};

std::string variables(std::string_view Paint::*colour) {
  std::string css;
  for (const Paint& role : kRoles) css += fmt::format("--{}:{};", role.name, role.*colour);
  for (const Paint& line : kSeries) css += fmt::format("--{}:{};", line.name, line.*colour);
  return css;
}

std::string rules(std::string_view name) {
  return fmt::format(".f-{0}{{fill:var(--{0})}}.s-{0}{{stroke:var(--{0})}}\n", name);
}

}  // namespace

Paint series_paint(size_t index) {
  return kSeries[index % kSeries.size()];
}

std::string_view series_dash(size_t index) {
  constexpr std::array<std::string_view, 4> kDashes = {"", "7 4", "2 3", "9 3 2 3"};
  return kDashes[index / kSeries.size() % kDashes.size()];
}

const Paint& paint_on(double opacity) {
  if (opacity < 0.6) return kInk;
  return opacity < 0.85 ? kOnMiddle : kOnAccent;
}

std::string palette_css() {
  std::string css = fmt::format(":root{{{}}}\n", variables(&Paint::light));
  // Paper stays white whatever the screen's mode.
  css +=
      fmt::format("@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n", variables(&Paint::dark));
  for (const Paint& role : kRoles) css += rules(role.name);
  for (const Paint& line : kSeries) css += rules(line.name);
  return css;
}

}  // namespace bitfed
