#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// TOML 1.0 without dates and times, which no recipe has.
namespace bitfed::toml {

struct Value;
using Array = std::vector<Value>;
using Table = std::map<std::string, Value, std::less<>>;

// How a table or an array came to be: what later lines may add to it.
enum class Origin : uint8_t {
  kValue,      // as a value: nothing
  kPath,       // [a.b] made a
  kHeader,     // [a] or [[a]]
  kDottedKey,  // a.b = 1 made a
};

struct Value {
  std::variant<std::string, int64_t, double, bool, Array, Table> content;
  size_t line = 0;  // of the document, from 1; 0: it is not from a document
  Origin origin = Origin::kValue;

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&content);
  }
  template <typename T>
  T* as() {
    return std::get_if<T>(&content);
  }
};

// Throws an input_error "SOURCE: line N: found X, expected Y".
Table parse(std::string_view text, std::string_view source);

// The same document has one text: values in the order of their keys, then the tables within.
std::string document_text(const Table& table);
std::string value_text(const Value& value);  // on one line

}  // namespace bitfed::toml
