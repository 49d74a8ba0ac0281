#include "bitfed/report/humanise.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string_view>

namespace bitfed {
namespace {

// The bounds lie half a last digit low, so that 9.996 reads "10.0" and not "10.00".
std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

std::string scaled(double value, const std::array<std::string_view, 5>& units) {
  if (!std::isfinite(value)) return "–";
  if (value < 999.5 && value == std::floor(value)) return fmt::format("{:.0f}{}", value, units[0]);
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  return three_digits(value) + std::string(units[unit]);
}

}  // namespace

std::string human_bytes(double bytes) {
  return scaled(bytes, {" B", " KB", " MB", " GB", " TB"});
}

std::string human_count(double count) {
  return scaled(count, {"", " k", " M", " G", " T"});
}

std::string human_bit_rate(double rate) {
  return scaled(rate, {" bit/s", " kbit/s", " Mbit/s", " Gbit/s", " Tbit/s"});
}

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "–";
  if (seconds == 0) return "0 s";
  if (seconds < 0.001) return three_digits(seconds * 1e6) + " µs";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 99.95) return three_digits(seconds) + " s";
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  const uint64_t minutes = (whole + 30) / 60;
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string percent(double fraction) {
  return std::isfinite(fraction) ? fmt::format("{:.2f} %", fraction * 100) : "–";
}

std::string signed_points(double difference) {
  const std::string text = fmt::format("{:+.2f}", difference * 100);
  return text.substr(1) == "0.00" ? "0.00" : text;
}

std::string exact_count(uint64_t count) {
  std::string digits = fmt::format("{}", count);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string exact_number(double value) {
  // Whole numbers never in the form 4.8e+20.
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{}", value);
}

}  // namespace bitfed
