// Documents from standard input, each ended by a zero byte, as Config reads them: "ok" and the document as it
// is written, or "error" and its line; each ended by a zero byte. For toml_reference_test.py.

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>

#include "bitfed/base/error.h"
#include "bitfed/base/toml.h"

int main() {
  const std::string all(std::istreambuf_iterator<char>(std::cin), {});
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = all.find('\0', begin);
    try {
      const auto table = bitfed::toml::parse(all.substr(begin, end - begin), "text");
      fmt::print("ok {}", bitfed::toml::document_text(table));
    } catch (const bitfed::Error& error) {
      fmt::print("error {}", error.what());
    }
    std::fputc('\0', stdout);
    begin = end + 1;
  }
}
