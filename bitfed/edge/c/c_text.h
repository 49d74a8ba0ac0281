#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bitfed {

// `text` with every @KEY@ replaced by its value.
std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& values);

// A finite float as C99 writes it without loss: 0x1.8p+1f.
std::string c_float(float value);

// Constant tables of a C source, and what they take of the flash.
class CTables {
 public:
  // With the narrowest type that holds all values.
  void integers(const std::string& name, const std::vector<int64_t>& values);
  // Those that functions take by pointer: always int32_t.
  void wide_integers(const std::string& name, const std::vector<int32_t>& values);
  void words(const std::string& name, const std::vector<uint32_t>& values);
  void floats(const std::string& name, const std::vector<float>& values);
  void doubles(const std::string& name, const std::vector<double>& values);

  const std::string& text() const { return text_; }
  uint64_t bytes() const { return bytes_; }

 private:
  void add(const std::string& type, size_t size, const std::string& name,
           const std::vector<std::string>& values);

  std::string text_;
  uint64_t bytes_ = 0;
};

}  // namespace bitfed
