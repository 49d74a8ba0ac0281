#pragma once

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

namespace bitfed {

// Why `text` is not one well-formed XML element as our pictures use XML: tags, quoted attributes, the
// entities that escape_markup() writes. "" where it is.
inline std::string xml_fault(const std::string& text) {
  static const std::regex kTag(R"re(</?[a-zA-Z][a-zA-Z0-9]*( [a-zA-Z][a-zA-Z0-9:-]*="[^"<>]*")*/?>)re");
  static const std::regex kText(R"re([^>&]*(&(amp|lt|gt|quot|#39);[^>&]*)*)re");
  std::vector<std::string> open;
  size_t at = 0;
  while (at < text.size()) {
    const size_t begin = std::min(text.find('<', at), text.size());
    const std::string between = text.substr(at, begin - at);
    if (!std::regex_match(between, kText)) return "bad text: " + between;
    if (begin == text.size()) break;
    const size_t end = text.find('>', begin);
    if (end == std::string::npos) return "a tag without end";
    const std::string tag = text.substr(begin, end - begin + 1);
    if (!std::regex_match(tag, kTag)) return "bad tag: " + tag;
    const std::string name =
        tag.substr(tag[1] == '/' ? 2 : 1, tag.find_first_of(" />", 2) - (tag[1] == '/' ? 2 : 1));
    if (tag[1] == '/') {
      if (open.empty() || open.back() != name) return "unexpected " + tag;
      open.pop_back();
    } else if (tag[tag.size() - 2] != '/') {
      open.push_back(name);
    }
    at = end + 1;
    if (open.empty() && text.find('<', at) != std::string::npos) return "a second root";
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

inline size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace bitfed
