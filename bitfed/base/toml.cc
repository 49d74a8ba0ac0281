#include "bitfed/base/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/base/utf8.h"

namespace bitfed::toml {
namespace {

using Path = std::vector<std::string>;

// Tables and arrays within one another: bounds the stack, here and wherever a document is walked.
constexpr size_t kMaximumDepth = 64;
constexpr size_t kMaximumShown = 40;  // bytes of what was found, in an error

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_bare(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

// Control characters other than tab, which TOML allows nowhere.
bool is_control(char c) {
  return (static_cast<uint8_t>(c) < ' ' && c != '\t') || c == 0x7f;
}

bool is_hexadecimal_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Whether every underscore of a number stands between two of its digits.
bool underscores_fit(std::string_view number, int base) {
  const auto is_digit_at = [&](size_t i) {
    return i < number.size() && (base == 16 ? is_hexadecimal_digit(number[i]) : is_digit(number[i]));
  };
  for (size_t i = 0; i < number.size(); ++i) {
    if (number[i] == '_' && (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1))) return false;
  }
  return true;
}

// 1979-05-27, 07:32:00
bool is_date_or_time(std::string_view word) {
  const size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  const char after = digits < word.size() ? word[digits] : '\0';
  return (digits == 4 && after == '-') || (digits == 2 && after == ':');
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view source) : text_(text), source_(source) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte order mark
  }

  Table document() {
    Value root{Table{}, 0, Origin::kHeader};
    Value* current = &root;
    size_t depth = 0;  // of `current`
    while (skip_blank_lines()) {
      if (peek() == '[') {
        current = header(&root, &depth);
      } else {
        assignment(current, depth);
      }
      end_of_line();
    }
    return std::move(*root.as<Table>());
  }

 private:
  // The text.

  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool at_end() const { return at_ == text_.size(); }
  bool starts_with(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  bool at_newline() const { return peek() == '\n' || starts_with("\r\n"); }

  bool take(std::string_view word) {
    if (!starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  void take_newline() {
    at_ += peek() == '\r' ? 2 : 1;
    ++line_;
  }

  // One character as it is. The text is checked here, since every byte of strings and comments passes.
  std::string_view take_character() {
    const size_t size = character_size(text_.substr(at_));
    if (size == 0) throw error("found bytes that are not UTF-8, expected text");
    if (is_control(peek()) && !at_newline()) throw error("found a control character, expected text");
    at_ += size;
    return text_.substr(at_ - size, size);
  }

  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t') ++at_;
  }

  void skip_comment() {
    if (peek() != '#') return;
    while (!at_end() && !at_newline()) take_character();
  }

  void end_of_line() {
    skip_spaces();
    skip_comment();
    if (at_end()) return;
    if (!at_newline()) throw unexpected("the end of the line");
    take_newline();
  }

  // Whether something follows.
  bool skip_blank_lines() {
    for (;;) {
      skip_spaces();
      skip_comment();
      if (at_end()) return false;
      if (!at_newline()) return true;
      take_newline();
    }
  }

  Error error(std::string_view what) const { return input_error("{}: line {}: {}", source_, line_, what); }

  Error unexpected(std::string_view expected) const {
    if (at_end()) return error(fmt::format("found the end, expected {}", expected));
    if (at_newline()) return error(fmt::format("found the end of the line, expected {}", expected));
    std::string found;
    for (std::string_view rest = text_.substr(at_); !rest.empty() && found.size() < kMaximumShown;) {
      const size_t size = character_size(rest);
      if (size == 0 || is_control(rest[0])) break;
      found += rest.substr(0, size);
      rest.remove_prefix(size);
    }
    return error(fmt::format("found '{}', expected {}", found, expected));
  }

  // Keys and tables.

  std::string simple_key() {
    if (peek() == '"' && !starts_with("\"\"\"")) return basic_string();
    if (peek() == '\'' && !starts_with("'''")) return literal_string();
    const size_t begin = at_;
    while (is_bare(peek())) ++at_;
    if (at_ == begin) throw unexpected("a key");
    return std::string(text_.substr(begin, at_ - begin));
  }

  Path key(size_t depth) {
    Path path;
    do {
      skip_spaces();
      path.push_back(simple_key());
      skip_spaces();
    } while (take("."));
    check_depth(depth + path.size());
    return path;
  }

  void check_depth(size_t depth) const {
    if (depth > kMaximumDepth)
      throw error(
          fmt::format("found tables and arrays within one another, expected at most {}", kMaximumDepth));
  }

  Error defined_twice(const Path& path, const Value& before) const {
    return error(fmt::format("{}: defined again, first in line {}", joined(path, "."), before.line));
  }

  // The table of a key in `within`, made if it is not there. An array of tables stands for its last one.
  Value* step(Value* within, const std::string& key, Origin origin, const Path& path) {
    const auto [found, is_new] = within->as<Table>()->try_emplace(key, Value{Table{}, line_, origin});
    Value* next = &found->second;
    if (is_new) return next;
    const bool is_dotted = origin == Origin::kDottedKey;
    if (Array* array = next->as<Array>(); array != nullptr && next->origin == Origin::kHeader && !is_dotted)
      return &array->back();
    const bool is_open = is_dotted ? next->origin == Origin::kDottedKey || next->origin == Origin::kPath
                                   : next->origin != Origin::kValue;
    if (next->as<Table>() == nullptr || !is_open) throw defined_twice(path, *next);
    if (is_dotted) next->origin = Origin::kDottedKey;
    return next;
  }

  // [a.b] or [[a.b]]: the table that the following lines fill.
  Value* header(Value* root, size_t* depth) {
    const bool is_array = starts_with("[[");
    at_ += is_array ? 2 : 1;
    const Path path = key(0);
    if (!take(is_array ? "]]" : "]")) throw unexpected(is_array ? "']]'" : "']'");
    *depth = path.size() + (is_array ? 1 : 0);
    Value* table = root;
    for (size_t i = 0; i + 1 < path.size(); ++i) table = step(table, path[i], Origin::kPath, path);
    const auto [found, is_new] =
        table->as<Table>()->try_emplace(path.back(), is_array ? Value{Array{}, line_, Origin::kHeader}
                                                              : Value{Table{}, line_, Origin::kHeader});
    Value* named = &found->second;
    if (is_array) {
      Array* array = named->as<Array>();
      if (array == nullptr || named->origin != Origin::kHeader) throw defined_twice(path, *named);
      return &array->emplace_back(Value{Table{}, line_, Origin::kHeader});
    }
    if (!is_new && (named->as<Table>() == nullptr || named->origin != Origin::kPath))
      throw defined_twice(path, *named);
    if (!is_new) *named = Value{std::move(*named->as<Table>()), line_, Origin::kHeader};
    return named;
  }

  void assignment(Value* table, size_t depth) {
    const Path path = key(depth);
    if (!take("=")) throw unexpected("'='");
    skip_spaces();
    Value* within = table;
    for (size_t i = 0; i + 1 < path.size(); ++i) within = step(within, path[i], Origin::kDottedKey, path);
    Table& entries = *within->as<Table>();
    if (const auto before = entries.find(path.back()); before != entries.end())
      throw defined_twice(path, before->second);
    entries.emplace(path.back(), value(depth + path.size()));
  }

  // Values.

  Value value(size_t depth) {
    check_depth(depth);
    const size_t line = line_;
    switch (peek()) {
      case '"':
        return {starts_with("\"\"\"") ? long_string('"') : basic_string(), line};
      case '\'':
        return {starts_with("'''") ? long_string('\'') : literal_string(), line};
      case '[':
        return {array(depth), line};
      case '{':
        return {inline_table(depth), line};
      default:
        return {scalar(), line};
    }
  }

  Array array(size_t depth) {
    Array elements;
    ++at_;
    for (;;) {
      skip_blank_lines();
      if (take("]")) return elements;
      elements.push_back(value(depth + 1));
      skip_blank_lines();
      if (take(",")) continue;
      if (peek() != ']') throw unexpected("',' or ']'");
    }
  }

  Table inline_table(size_t depth) {
    Value table{Table{}, line_, Origin::kHeader};
    ++at_;
    skip_spaces();
    if (take("}")) return {};
    for (;;) {
      assignment(&table, depth);
      skip_spaces();
      if (take("}")) return std::move(*table.as<Table>());
      if (!take(",")) throw unexpected("',' or '}'");
    }
  }

  std::string literal_string() {
    const size_t begin = ++at_;
    while (peek() != '\'') {
      if (at_end() || at_newline()) throw unexpected("the closing '");
      take_character();
    }
    return std::string(text_.substr(begin, at_++ - begin));
  }

  std::string basic_string() {
    std::string result;
    ++at_;
    while (!take("\"")) {
      if (at_end() || at_newline()) throw unexpected("the closing \"");
      add_character(&result);
    }
    return result;
  }

  void add_character(std::string* result) {
    if (peek() == '\\') {
      add_escaped(result);
    } else {
      *result += take_character();
    }
  }

  // Of three quotes: over several lines, with escapes if the quotes are double.
  std::string long_string(char quote) {
    std::string result;
    at_ += 3;
    if (at_newline()) take_newline();
    for (;;) {
      if (at_end()) throw unexpected(fmt::format("three closing {}", quote));
      if (size_t quotes = count(quote); quotes >= 3) {
        // Up to two quotes may stand before the closing ones.
        quotes = std::min<size_t>(quotes, 5);
        at_ += quotes;
        return result.append(quotes - 3, quote);
      }
      if (at_newline()) {
        take_newline();
        result += '\n';
      } else if (quote == '"' && peek() == '\\' && ends_line(1)) {
        at_ += 1;
        skip_whitespace();
      } else if (quote == '"') {
        add_character(&result);
      } else {
        result += take_character();
      }
    }
  }

  size_t count(char quote) const {
    size_t quotes = 0;
    while (peek(quotes) == quote) ++quotes;
    return quotes;
  }

  // Whether only spaces follow in the line, from `ahead` on.
  bool ends_line(size_t ahead) const {
    while (peek(ahead) == ' ' || peek(ahead) == '\t') ++ahead;
    return peek(ahead) == '\n' || (peek(ahead) == '\r' && peek(ahead + 1) == '\n');
  }

  void skip_whitespace() {
    for (skip_spaces(); at_newline(); skip_spaces()) take_newline();
  }

  void add_escaped(std::string* result) {
    constexpr std::string_view kEscapes = "btnfr\"\\";
    constexpr std::string_view kMeanings = "\b\t\n\f\r\"\\";
    const char letter = peek(1);
    if (letter == 'u' || letter == 'U') {
      append_utf8(code_point(letter == 'u' ? 4 : 8), result);
      return;
    }
    const size_t index = letter == '\0' ? std::string_view::npos : kEscapes.find(letter);
    if (index == std::string_view::npos)
      throw unexpected("an escape: \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX");
    *result += kMeanings[index];
    at_ += 2;
  }

  uint32_t code_point(size_t digits) {
    const std::string_view text = text_.substr(std::min(at_ + 2, text_.size()), digits);
    uint32_t point = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), point, 16);
    const bool is_whole = text.size() == digits && code == std::errc() && end == text.data() + text.size();
    if (!is_whole || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
      throw unexpected(fmt::format("a character's number of {} hexadecimal digits", digits));
    at_ += 2 + digits;
    return point;
  }

  // What has no quotes or brackets: true, false, numbers.
  decltype(Value::content) scalar() {
    size_t size = 0;
    while (is_bare(peek(size)) || peek(size) == '+' || peek(size) == '.' || peek(size) == ':') ++size;
    const std::string_view word = text_.substr(at_, size);
    if (word == "true" || word == "false") {
      at_ += size;
      return word == "true";
    }
    const bool has_sign = word.starts_with('+') || word.starts_with('-');
    const std::string_view digits = word.substr(has_sign ? 1 : 0);
    const auto number = read_number(digits, word.starts_with('-'), has_sign);
    at_ += size;
    return number;
  }

  decltype(Value::content) read_number(std::string_view digits, bool is_negative, bool has_sign) const {
    if (digits == "inf" || digits == "nan") {
      const double size = digits == "inf" ? std::numeric_limits<double>::infinity()
                                          : std::numeric_limits<double>::quiet_NaN();
      return is_negative ? -size : size;
    }
    if (digits.empty() || !is_digit(digits[0]))
      throw unexpected("a value: a number, true, false, or text in quotes");
    if (is_date_or_time(digits)) throw unexpected("a number: dates and times are not used");
    const int base = digits.starts_with("0x")   ? 16
                     : digits.starts_with("0o") ? 8
                     : digits.starts_with("0b") ? 2
                                                : 10;
    const std::string_view body = digits.substr(base == 10 ? 0 : 2);
    if (!underscores_fit(body, base) || (base != 10 && has_sign)) throw unexpected("a number");
    std::string plain(body);
    plain.erase(std::remove(plain.begin(), plain.end(), '_'), plain.end());
    if (base == 10 && plain.find_first_of(".eE") != std::string::npos) return real(plain, is_negative);
    return whole(plain, base, is_negative);
  }

  int64_t whole(const std::string& digits, int base, bool is_negative) const {
    // With its sign, since the least number has no positive counterpart.
    const std::string text = is_negative ? "-" + digits : digits;
    int64_t result = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), result, base);
    if (code == std::errc::result_out_of_range) throw unexpected("a number of 64 bits");
    const bool has_leading_zero = base == 10 && digits.size() > 1 && digits[0] == '0';
    if (code != std::errc() || end != text.data() + text.size() || has_leading_zero || digits.empty() ||
        digits[0] == '-')
      throw unexpected("a number");
    return result;
  }

  double real(const std::string& digits, bool is_negative) const {
    const size_t point = digits.find('.');
    const size_t exponent = std::min(digits.find_first_of("eE"), digits.size());
    const size_t whole_size = std::min(point, exponent);
    const bool has_leading_zero = whole_size > 1 && digits[0] == '0';
    const bool has_fraction =
        point == std::string::npos || (point + 1 < exponent && is_digit(digits[point + 1]));
    double result = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), result);
    if (code == std::errc::result_out_of_range) throw unexpected("a number that a double can hold");
    if (code != std::errc() || end != digits.data() + digits.size() || has_leading_zero || !has_fraction)
      throw unexpected("a number");
    return is_negative ? -result : result;
  }

  std::string_view text_;
  std::string_view source_;
  size_t at_ = 0;
  size_t line_ = 1;
};

bool is_array_of_tables(const Value& value) {
  const Array* array = value.as<Array>();
  const auto is_table = [](const Value& element) { return element.as<Table>() != nullptr; };
  return array != nullptr && !array->empty() && std::all_of(array->begin(), array->end(), is_table);
}

std::string string_text(std::string_view whole) {
  std::string_view text = whole;
  bool is_literal = true;
  std::string escaped;
  for (size_t size = 0; !text.empty(); text.remove_prefix(size)) {
    size = std::max<size_t>(character_size(text), 1);
    const char c = text[0];
    const bool is_none = character_size(text) == 0;  // bytes that are no text
    is_literal = is_literal && !is_control(c) && c != '\'' && !is_none;
    if (c == '"' || c == '\\') {
      escaped += {'\\', c};
    } else if (is_control(c) || is_none) {
      escaped += c == '\n' ? "\\n" : fmt::format("\\u{:04X}", static_cast<uint8_t>(c));
    } else {
      escaped += text.substr(0, size);
    }
  }
  return is_literal ? fmt::format("'{}'", whole) : fmt::format("\"{}\"", escaped);
}

std::string key_text(const std::string& key) {
  const bool is_plain = !key.empty() && std::all_of(key.begin(), key.end(), is_bare);
  return is_plain ? key : string_text(key);
}

void write_table(const Table& table, const std::string& path, std::string* text) {
  for (const auto& [key, value] : table) {
    if (value.as<Table>() == nullptr && !is_array_of_tables(value))
      *text += fmt::format("{} = {}\n", key_text(key), value_text(value));
  }
  for (const auto& [key, value] : table) {
    const std::string inner = path.empty() ? key_text(key) : path + "." + key_text(key);
    if (const Table* within = value.as<Table>()) {
      *text += fmt::format("\n[{}]\n", inner);
      write_table(*within, inner, text);
    } else if (is_array_of_tables(value)) {
      for (const Value& element : *value.as<Array>()) {
        *text += fmt::format("\n[[{}]]\n", inner);
        write_table(*element.as<Table>(), inner, text);
      }
    }
  }
}

struct ValueText {
  std::string operator()(const std::string& text) const { return string_text(text); }
  std::string operator()(int64_t number) const { return std::to_string(number); }
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(double number) const {
    const std::string text = fmt::format("{}", number);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  std::string operator()(const Array& array) const {
    Path elements;
    for (const Value& element : array) elements.push_back(value_text(element));
    return fmt::format("[{}]", joined(elements));
  }
  std::string operator()(const Table& table) const {
    Path entries;
    for (const auto& [key, value] : table)
      entries.push_back(fmt::format("{} = {}", key_text(key), value_text(value)));
    return table.empty() ? "{}" : fmt::format("{{ {} }}", joined(entries));
  }
};

}  // namespace

Table parse(std::string_view text, std::string_view source) {
  return Parser(text, source).document();
}

std::string document_text(const Table& table) {
  std::string text;
  write_table(table, "", &text);
  return text;
}

std::string value_text(const Value& value) {
  return std::visit(ValueText{}, value.content);
}

}  // namespace bitfed::toml
