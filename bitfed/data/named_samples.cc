#include "bitfed/data/named_samples.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr size_t kMaximumClasses = std::numeric_limits<uint16_t>::max();

// "3" and "3.0" are 3. False: not a number.
bool read_number(const std::string& text, double* value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return code == std::errc() && end == text.data() + text.size();
}

struct Numbered {
  std::vector<std::string> names;  // sorted
  std::vector<uint32_t> indices;   // of each text
};

Numbered number_texts(const std::vector<std::string>& texts) {
  Numbered result;
  std::unordered_map<std::string, uint32_t> found;
  for (const std::string& text : texts) {
    const auto [place, is_new] = found.try_emplace(text, static_cast<uint32_t>(result.names.size()));
    if (is_new) result.names.push_back(text);
    result.indices.push_back(place->second);
  }
  std::vector<double> values(result.names.size());
  bool are_numbers = true;
  for (size_t i = 0; i < values.size(); ++i) {
    are_numbers =
        are_numbers && read_number(result.names[i], &values[i]) && values[i] == std::floor(values[i]);
  }
  std::vector<uint32_t> order(result.names.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    if (are_numbers && values[a] != values[b]) return values[a] < values[b];
    return result.names[a] < result.names[b];
  });
  std::vector<uint32_t> ranks(order.size());
  std::vector<std::string> sorted;
  for (uint32_t rank = 0; rank < order.size(); ++rank) {
    ranks[order[rank]] = rank;
    sorted.push_back(result.names[order[rank]]);
  }
  result.names = std::move(sorted);
  for (uint32_t& index : result.indices) index = ranks[index];
  return result;
}

// All numbers, and one of them not whole: a measurement, not a class.
void refuse_measurements(const std::vector<std::string>& names, const std::string& name) {
  const std::string* fraction = nullptr;
  for (const std::string& text : names) {
    double value = 0;
    if (!read_number(text, &value)) return;
    if (value != std::floor(value) && fraction == nullptr) fraction = &text;
  }
  if (fraction != nullptr)
    throw input_error("{}: labels are real values such as {}, expected classes", name, *fraction);
}

}  // namespace

void append(NamedSamples* samples, NamedSamples more) {
  if (samples->size() == 0) {
    *samples = std::move(more);
    return;
  }
  Dataset& data = samples->data;
  if (more.data.columns != data.columns || more.data.height != data.height || more.data.width != data.width ||
      more.data.channels != data.channels) {
    const auto shape = [](const Dataset& of) {
      if (of.is_table()) return fmt::format("{} columns", of.columns.size());
      return fmt::format("{} x {} x {}", of.height, of.width, of.channels);
    };
    throw input_error("{}: found samples of {}, expected {} as in {}", more.data.name, shape(more.data),
                      shape(data), data.name);
  }
  if (more.people.empty() != samples->people.empty()) {
    throw input_error("{}: {} people, but {} has {}", more.data.name,
                      more.people.empty() ? "without" : "with", data.name,
                      more.people.empty() ? "some" : "none");
  }
  data.pixels.append(more.data.pixels);
  data.values.append(more.data.values);
  samples->classes.insert(samples->classes.end(), more.classes.begin(), more.classes.end());
  samples->people.insert(samples->people.end(), more.people.begin(), more.people.end());
}

Dataset numbered(NamedSamples samples, const std::string& name, const std::vector<std::string>& class_names) {
  Dataset dataset = std::move(samples.data);
  dataset.name = name;
  Numbered classes = number_texts(samples.classes);
  refuse_measurements(classes.names, name);
  if (classes.names.size() > kMaximumClasses) {
    throw input_error("{}: found {} classes, expected at most {}", name, classes.names.size(),
                      kMaximumClasses);
  }
  if (!class_names.empty() && class_names.size() != classes.names.size()) {
    throw input_error("{}: class_names: found {} names, expected {}, for the labels {} to {}", name,
                      class_names.size(), classes.names.size(), classes.names.front(), classes.names.back());
  }
  dataset.class_names = class_names.empty() ? std::move(classes.names) : class_names;
  dataset.labels.assign(classes.indices.begin(), classes.indices.end());
  Numbered people = number_texts(samples.people);
  dataset.group_names = std::move(people.names);
  dataset.groups = std::move(people.indices);
  return dataset;
}

}  // namespace bitfed
