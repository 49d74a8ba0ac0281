#include "bitfed/base/text_difference.h"

#include <fmt/format.h>

#include <algorithm>

namespace bitfed {
namespace {

std::string_view take_line(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

}  // namespace

std::string first_difference(std::string_view there, std::string_view here) {
  while (!there.empty() || !here.empty()) {
    const std::string_view left = take_line(&there);
    const std::string_view right = take_line(&here);
    if (left != right) {
      return fmt::format("{} there, {} here", left.empty() ? "nothing" : fmt::format("'{}'", left),
                         right.empty() ? "nothing" : fmt::format("'{}'", right));
    }
  }
  return "no difference";
}

}  // namespace bitfed
