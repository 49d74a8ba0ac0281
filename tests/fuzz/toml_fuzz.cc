#include <cstring>

#include "bitfed/base/error.h"
#include "bitfed/base/toml.h"

// What is read is written, and read again to the same text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const std::string written = bitfed::toml::document_text(bitfed::toml::parse(text, "fuzz"));
    if (bitfed::toml::document_text(bitfed::toml::parse(written, "written")) != written) __builtin_trap();
  } catch (const bitfed::Error& error) {
    if (std::strstr(error.what(), "fuzz: line ") != error.what()) __builtin_trap();
  }
  return 0;
}
