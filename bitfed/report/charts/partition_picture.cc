#include "bitfed/report/charts/partition_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bitfed/report/charts/charts.h"

namespace bitfed {
namespace {

// More columns than this cannot be distinguished, and a page of a million cells cannot be opened.
constexpr size_t kMaxClients = 300;

std::vector<std::string> names_for(const std::vector<std::string>& known, size_t count) {
  std::vector<std::string> names(known.begin(),
                                 known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), count)));
  while (names.size() < count) names.push_back(fmt::format("{}", names.size()));
  return names;
}

// Square roots, so that the few samples of a rare class can still be seen next to thousands.
double shade_of(uint64_t value, uint64_t most) {
  return most == 0 ? 0 : std::sqrt(static_cast<double>(value) / static_cast<double>(most));
}

size_t widest_row(const std::vector<std::vector<uint32_t>>& counts) {
  size_t width = 0;
  for (const auto& row : counts) width = std::max(width, row.size());
  return width;
}

}  // namespace

std::string partition_picture(const std::vector<std::vector<uint32_t>>& counts,
                              const std::vector<std::string>& class_names, const std::string& title,
                              const std::vector<std::string>& people) {
  const size_t clients = std::min(counts.size(), kMaxClients);
  const size_t classes = std::max(widest_row(counts), class_names.size());
  HeatMap map;
  map.title = title;
  map.row_axis = "class";
  map.column_axis = people.empty() ? "client" : "person";
  if (clients < counts.size()) map.column_axis += fmt::format(" (first {} of {})", clients, counts.size());
  map.row_names = names_for(class_names, classes);
  map.column_names = names_for(people, clients);
  map.values.assign(classes, std::vector<uint64_t>(clients));
  map.shades.assign(classes, std::vector<double>(clients));
  uint64_t most = 0;
  for (size_t client = 0; client < clients; ++client) {
    for (size_t c = 0; c < counts[client].size(); ++c) {
      map.values[c][client] = counts[client][c];
      most = std::max<uint64_t>(most, counts[client][c]);
    }
    map.column_totals.push_back(std::accumulate(counts[client].begin(), counts[client].end(), uint64_t{0}));
  }
  for (size_t c = 0; c < classes; ++c) {
    for (size_t client = 0; client < clients; ++client)
      map.shades[c][client] = shade_of(map.values[c][client], most);
  }
  return heat_map(map);
}

std::string confusion_picture(const std::vector<std::vector<uint64_t>>& counts,
                              const std::vector<std::string>& class_names, const std::string& title) {
  HeatMap map;
  map.title = title;
  map.row_axis = "true";
  map.column_axis = "predicted";
  map.row_names = names_for(class_names, counts.size());
  map.column_names = map.row_names;
  map.values = counts;
  map.is_confusion = true;
  for (const auto& row : counts) {
    const uint64_t total = std::accumulate(row.begin(), row.end(), uint64_t{0});
    std::vector<double> shades;
    for (const uint64_t value : row) shades.push_back(shade_of(value, total));
    map.shades.push_back(std::move(shades));
  }
  return heat_map(map);
}

}  // namespace bitfed
