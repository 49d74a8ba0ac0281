#include "bitfed/run/same_recipe.h"

#include <set>
#include <string>
#include <utility>

namespace bitfed {
namespace {

constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
    {"least_answers", "min_answers"},
    {"most_samples", "max_samples"},
    {"most_votes", "max_votes"},
};

std::string renamed(std::string_view line) {
  const size_t end = line.find(" =");
  for (const auto& [earlier, name] : kRenamed) {
    if (line.substr(0, end) == earlier) return std::string(name) + std::string(line.substr(end));
  }
  return std::string(line);
}

// The lines, each with its section: the order of keys within a section may change with their names.
std::multiset<std::string> lines_of(std::string_view recipe) {
  std::multiset<std::string> lines;
  std::string section;
  while (!recipe.empty()) {
    const size_t end = recipe.find('\n');
    const std::string_view line = recipe.substr(0, end);
    recipe.remove_prefix(end == std::string_view::npos ? recipe.size() : end + 1);
    if (line.starts_with('[')) section = line;
    if (!line.empty()) lines.insert(section + "\n" + renamed(line));
  }
  return lines;
}

}  // namespace

bool same_recipe(std::string_view a, std::string_view b) {
  return a == b || lines_of(a) == lines_of(b);
}

}  // namespace bitfed
