#include "bitfed/edge/c/c_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace bitfed {
namespace {

constexpr size_t kLine = 110;

struct IntegerType {
  const char* name;
  size_t size;
  int64_t min;
  int64_t max;
};

// The narrow ones first, those without a sign before those with one.
constexpr IntegerType kIntegerTypes[] = {
    {"uint8_t", 1, 0, UINT8_MAX},         {"int8_t", 1, INT8_MIN, INT8_MAX},
    {"uint16_t", 2, 0, UINT16_MAX},       {"int16_t", 2, INT16_MIN, INT16_MAX},
    {"uint32_t", 4, 0, UINT32_MAX},       {"int32_t", 4, INT32_MIN, INT32_MAX},
    {"int64_t", 8, INT64_MIN, INT64_MAX},
};

const IntegerType& narrowest(const std::vector<int64_t>& values) {
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  for (const IntegerType& type : kIntegerTypes) {
    if (values.empty() || (*min >= type.min && *max <= type.max)) return type;
  }
  return kIntegerTypes[std::size(kIntegerTypes) - 1];
}

}  // namespace

std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  for (const auto& [key, value] : values) {
    const std::string mark = "@" + key + "@";
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
      text.replace(at, mark.size(), value);
  }
  return text;
}

std::string c_float(float value) {
  assert(std::isfinite(value));
  return fmt::format("{:a}f", value);
}

void CTables::add(const std::string& type, size_t size, const std::string& name,
                  const std::vector<std::string>& values) {
  // C knows no empty tables.
  text_ += fmt::format("static const {} {}[{}] = {{", type, name, std::max<size_t>(1, values.size()));
  size_t column = kLine;
  for (const std::string& value : values) {
    if (column + value.size() + 2 > kLine) {
      text_ += "\n ";
      column = 1;
    }
    text_ += " " + value + ",";
    column += value.size() + 2;
  }
  text_ += values.empty() ? "0};\n" : "\n};\n";
  bytes_ += size * std::max<size_t>(1, values.size());
}

void CTables::integers(const std::string& name, const std::vector<int64_t>& values) {
  const IntegerType& type = narrowest(values);
  std::vector<std::string> texts;
  for (const int64_t value : values) {
    // The smallest numbers have no literal of their own.
    if (value == INT32_MIN) {
      texts.emplace_back("-2147483647 - 1");
    } else {
      texts.push_back(std::to_string(value) + (value > INT32_MAX ? "u" : ""));
    }
  }
  add(type.name, type.size, name, texts);
}

void CTables::wide_integers(const std::string& name, const std::vector<int32_t>& values) {
  std::vector<std::string> texts;
  for (const int32_t value : values) texts.push_back(std::to_string(value));
  add("int32_t", 4, name, texts);
}

void CTables::words(const std::string& name, const std::vector<uint32_t>& values) {
  std::vector<std::string> texts;
  for (const uint32_t value : values) texts.push_back(fmt::format("{:#x}u", value));
  add("uint32_t", 4, name, texts);
}

void CTables::floats(const std::string& name, const std::vector<float>& values) {
  std::vector<std::string> texts;
  for (const float value : values) texts.push_back(c_float(value));
  add("float", 4, name, texts);
}

void CTables::doubles(const std::string& name, const std::vector<double>& values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(fmt::format("{:a}", value));
  add("double", 8, name, texts);
}

}  // namespace bitfed
