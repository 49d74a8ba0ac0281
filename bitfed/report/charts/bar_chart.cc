#include "bitfed/report/charts/charts.h"

#include <algorithm>
#include <cmath>

#include "bitfed/report/markup.h"

namespace bitfed {
namespace {

constexpr double kWidth = 460;
constexpr double kRow = 30;
constexpr double kThickness = 16;
constexpr double kCharacter = 6.8;  // the width of one, about, at the size of the labels
constexpr size_t kLongestLabel = 26;

double widest(const std::vector<std::string>& texts) {
  size_t characters = 0;
  for (const std::string& text : texts) characters = std::max(characters, character_count(text));
  return kCharacter * static_cast<double>(characters);
}

double largest(const std::vector<Bar>& bars) {
  double value = 0;
  for (const Bar& bar : bars) {
    if (std::isfinite(bar.value)) value = std::max(value, bar.value);
  }
  return value;
}

double length_of(double value, double full) {
  return std::isfinite(value) && full > 0 ? std::clamp(value / full, 0.0, 1.0) : 0;
}

}  // namespace

std::string bar_chart(const std::string& title, const std::vector<Bar>& bars, double full) {
  SvgWriter svg(kWidth, kRow * static_cast<double>(std::max<size_t>(bars.size(), 1)) + 8, title);
  if (bars.empty()) svg.text({0, kRow / 2 + 4}, "nothing was measured", {.paint = kMuted});
  if (full <= 0) full = largest(bars);
  std::vector<std::string> labels;
  std::vector<std::string> texts;
  for (const Bar& bar : bars) {
    labels.push_back(bar.label);
    texts.push_back(bar.text);
  }
  labels = shorten_apart(labels, kLongestLabel);
  const double left = widest(labels) + 12;
  const double right = widest(texts) + 14;
  const double length = kWidth - left - right;
  for (size_t i = 0; i < bars.size(); ++i) {
    const double middle = 4 + kRow * (static_cast<double>(i) + 0.5);
    const double width = length * length_of(bars[i].value, full);
    svg.text({0, middle + 4}, labels[i]);
    svg.rectangle({left, middle - kThickness / 2, length, kThickness}, kGrid, {.opacity = 0.45, .radius = 2});
    svg.rectangle({left, middle - kThickness / 2, width, kThickness}, series_paint(bars[i].colour),
                  {.radius = 2, .tooltip = bars[i].tooltip});
    svg.text({kWidth, middle + 4}, bars[i].text, {.anchor = Anchor::kEnd, .bold = true});
  }
  return svg.finish();
}

}  // namespace bitfed
