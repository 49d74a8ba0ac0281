#include "bitfed/model/safetensors_header.h"

#include <algorithm>
#include <optional>
#include <set>

#include "bitfed/base/error.h"
#include "bitfed/base/utf8.h"

namespace bitfed {
namespace {

constexpr size_t kMaxDimensions = 16;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The tokens of JSON that a header is made of. Errors are syntax errors at the current byte.
class Tokens {
 public:
  Tokens(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  // The first byte of the next token, which is not consumed; '\0' at the end.
  char peek() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos)
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char token) {
    if (peek() != token) return false;
    ++at_;
    return true;
  }

  void expect(char token) {
    if (!accept(token)) throw syntax_error();
  }

  void expect_end() {
    peek();
    if (at_ != text_.size()) throw syntax_error();
  }

  // The error where a value of another kind was expected: `wrong_kind` if some JSON value begins here, else a
  // syntax error.
  Error wrong_value(Error wrong_kind) {
    const char c = peek();
    const bool begins_value =
        is_digit(c) || (c != '\0' && std::string_view("\"[{-tfn").find(c) != std::string_view::npos);
    return begins_value ? wrong_kind : syntax_error();
  }

  std::string string() {
    expect('"');
    std::string result;
    while (true) {
      const auto c = static_cast<uint8_t>(next());
      if (c == '"') return result;
      if (c < 0x20) throw syntax_error();  // control characters must be escaped
      if (c == '\\') {
        append_utf8(escaped(), &result);
      } else {
        result += static_cast<char>(c);
        if (c >= 0x80) copy_continuation(c, &result);
      }
    }
  }

  // The number that begins here with a digit; none if it is not whole or does not fit 64 bits.
  std::optional<uint64_t> whole_number() {
    uint64_t number = 0;
    const size_t first = at_;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      const auto digit = static_cast<uint64_t>(text_[at_] - '0');
      if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, digit, &number))
        return std::nullopt;
    }
    const bool has_leading_zero = text_[first] == '0' && at_ - first > 1;
    const char after = at_ < text_.size() ? text_[at_] : '\0';
    if (has_leading_zero || after == '.' || after == 'e' || after == 'E') return std::nullopt;
    return number;
  }

 private:
  Error syntax_error() const {
    return input_error("{}: its header is not a JSON object (at byte {}), expected a safetensors file",
                       source_, at_);
  }

  char next() {
    if (at_ == text_.size()) throw syntax_error();
    return text_[at_++];
  }

  uint32_t four_hex_digits() {
    uint32_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = next();
      const uint32_t digit = is_digit(c)            ? static_cast<uint32_t>(c - '0')
                             : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a' + 10)
                             : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A' + 10)
                                                    : 16;
      if (digit == 16) throw syntax_error();
      value = 16 * value + digit;
    }
    return value;
  }

  // The code point of an escape, whose backslash was consumed. Beyond U+FFFF it is written as two surrogates.
  uint32_t escaped() {
    const char c = next();
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (const size_t letter = kLetters.find(c); letter != std::string_view::npos)
      return static_cast<uint8_t>(kMeanings[letter]);
    if (c != 'u') throw syntax_error();
    const uint32_t first = four_hex_digits();
    if (first < 0xd800 || first > 0xdfff) return first;
    if (first > 0xdbff || next() != '\\' || next() != 'u') throw syntax_error();
    const uint32_t second = four_hex_digits();
    if (second < 0xdc00 || second > 0xdfff) throw syntax_error();
    return 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
  }

  // The bytes after the first of a character beyond ASCII; RFC 3629, section 4. The range of the second byte
  // excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  void copy_continuation(uint8_t first, std::string* text) {
    if (first < 0xc2 || first > 0xf4) throw syntax_error();
    const int count = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    for (int i = 0; i < count; ++i) {
      const auto c = static_cast<uint8_t>(next());
      const bool is_second = i == 0;
      const uint8_t min = is_second && first == 0xe0 ? 0xa0 : is_second && first == 0xf0 ? 0x90 : 0x80;
      const uint8_t max = is_second && first == 0xed ? 0x9f : is_second && first == 0xf4 ? 0x8f : 0xbf;
      if (c < min || c > max) throw syntax_error();
      *text += static_cast<char>(c);
    }
  }

  std::string_view text_;
  std::string_view source_;
  size_t at_ = 0;
};

class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view source) : tokens_(text, source), source_(source) {}

  SafetensorsHeader parse() {
    SafetensorsHeader header;
    for_each_member([&](const std::string& name) {
      if (name == "__metadata__") {
        header.metadata = metadata();
      } else {
        header.tensors.push_back(tensor(name));
      }
    });
    tokens_.expect_end();
    return header;
  }

 private:
  // Reads an object: `read` consumes the value of each name.
  template <typename Read>
  void for_each_member(Read read) {
    std::set<std::string> names;
    tokens_.expect('{');
    if (tokens_.accept('}')) return;
    do {
      const auto [name, is_new] = names.insert(tokens_.string());
      if (!is_new) throw input_error("{}: its header has '{}' twice", source_, printable_name(*name));
      tokens_.expect(':');
      read(*name);
    } while (tokens_.accept(','));
    tokens_.expect('}');
  }

  std::map<std::string, std::string> metadata() {
    std::map<std::string, std::string> result;
    if (tokens_.peek() != '{')
      throw tokens_.wrong_value(input_error("{}: __metadata__ is not an object of strings", source_));
    for_each_member([&](const std::string& key) {
      if (tokens_.peek() != '"') {
        throw tokens_.wrong_value(
            input_error("{}: __metadata__ '{}' is not a string", source_, printable_name(key)));
      }
      result[key] = tokens_.string();
    });
    return result;
  }

  TensorEntry tensor(const std::string& name) {
    const Error wrong_fields =
        input_error("{}: tensor '{}': expected dtype, shape and data_offsets and nothing else", source_,
                    printable_name(name));
    if (tokens_.peek() != '{') throw tokens_.wrong_value(wrong_fields);
    TensorEntry entry;
    entry.name = name;
    size_t fields = 0;
    for_each_member([&](const std::string& field) {
      ++fields;
      if (field == "dtype") {
        entry.dtype = dtype(name);
      } else if (field == "shape") {
        entry.shape = whole_numbers(name, field);
      } else if (field == "data_offsets") {
        entry.data_offsets = whole_numbers(name, field);
      } else {
        throw wrong_fields;
      }
    });
    if (fields != 3) throw wrong_fields;
    return entry;
  }

  std::string dtype(const std::string& name) {
    if (tokens_.peek() != '"') {
      throw tokens_.wrong_value(
          input_error("{}: tensor '{}': dtype is not a string", source_, printable_name(name)));
    }
    return tokens_.string();
  }

  std::vector<uint64_t> whole_numbers(const std::string& name, const std::string& field) {
    const auto wrong_kind = [&] {
      return input_error("{}: tensor '{}': {} is not an array of at most {} whole numbers", source_,
                         printable_name(name), field, kMaxDimensions);
    };
    if (!tokens_.accept('[')) throw tokens_.wrong_value(wrong_kind());
    std::vector<uint64_t> numbers;
    if (tokens_.accept(']')) return numbers;
    do {
      if (!is_digit(tokens_.peek())) throw tokens_.wrong_value(wrong_kind());
      const std::optional<uint64_t> number = tokens_.whole_number();
      if (!number || numbers.size() == kMaxDimensions) throw wrong_kind();
      numbers.push_back(*number);
    } while (tokens_.accept(','));
    tokens_.expect(']');
    return numbers;
  }

  Tokens tokens_;
  std::string_view source_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view text, std::string_view source) {
  return HeaderParser(text, source).parse();
}

std::string printable_name(std::string_view name) {
  constexpr size_t kMaxBytes = 100;
  size_t size = std::min(name.size(), kMaxBytes);
  while (size < name.size() && (static_cast<uint8_t>(name[size]) & 0xc0) == 0x80) --size;  // whole characters
  std::string result(name.substr(0, size));
  for (char& c : result) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return size < name.size() ? result + "…" : result;
}

}  // namespace bitfed
