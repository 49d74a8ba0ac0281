#include "bitfed/base/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/base/toml.h"

namespace bitfed {
namespace {

using Path = std::vector<std::string>;

std::string dotted(const Path& path) {
  return joined(path, ".");
}

Path inside(Path table, std::string_view key) {
  table.emplace_back(key);
  return table;
}

Path outside(const Path& path) {
  return Path(path.begin(), path.end() - 1);
}

// The index in a path that names an element of an array; none if the key is not a number.
std::optional<size_t> array_index(const std::string& key) {
  size_t index = 0;
  const auto [end, code] = std::from_chars(key.data(), key.data() + key.size(), index);
  if (code != std::errc() || end != key.data() + key.size()) return std::nullopt;
  return index;
}

// The value of a key of a table, or the element of an array at that index.
const toml::Value* child(const toml::Value& value, const std::string& key) {
  if (const auto* table = value.as<toml::Table>()) {
    const auto found = table->find(key);
    return found != table->end() ? &found->second : nullptr;
  }
  const auto* array = value.as<toml::Array>();
  const auto index = array_index(key);
  return array != nullptr && index && *index < array->size() ? &(*array)[*index] : nullptr;
}

// What was found, for an error: scalars as they are, containers by their kind.
std::string kind_of(const toml::Value& value) {
  if (value.as<toml::Table>() != nullptr) return "a table";
  if (value.as<toml::Array>() != nullptr) return "an array";
  if (const auto* text = value.as<std::string>()) return fmt::format("the string '{}'", *text);
  if (const auto* number = value.as<double>()) return fmt::format("{}", *number);
  return toml::value_text(value);
}

const toml::Value* find_in(const toml::Value& root, const Path& path) {
  const toml::Value* node = &root;
  for (const std::string& key : path) {
    node = child(*node, key);
    if (node == nullptr) return nullptr;
  }
  return node;
}

std::optional<double> number_of(const toml::Value& value) {
  if (const auto* whole = value.as<int64_t>()) return static_cast<double>(*whole);
  if (const auto* real = value.as<double>()) return *real;
  return std::nullopt;
}

// The keys that say what a table is about, and so what its other keys mean.
constexpr std::array<std::string_view, 4> kIdentities = {"name", "file", "folder", "kind"};

}  // namespace

struct Config::Document {
  std::string source;
  toml::Value root;    // with overrides
  toml::Value parsed;  // before overrides
  toml::Value in_effect{toml::Table{}};
  std::set<std::string> overridden;
  using Keys = std::map<std::string, std::set<std::string>>;  // by the path of their table
  Keys asked;
  Keys permitted;                   // see Config::permit
  std::set<std::string> droppable;  // paths; see Config::allow_dropping

  const toml::Value* find(const Path& path) const { return find_in(root, path); }

  std::string where(const Path& path) const {
    const std::string key = dotted(path);
    if (from_override(path)) return fmt::format("--set {}", key);
    const toml::Value* node = find(path);
    const size_t line = node != nullptr ? node->line : 0;
    return line > 0 ? fmt::format("{}: line {}: {}", source, line, key) : fmt::format("{}: {}", source, key);
  }

  // Whether the value or a table around it was given with --set, or the table exists only because of --set.
  bool from_override(const Path& path) const {
    for (size_t length = 1; length <= path.size(); ++length) {
      const Path outer(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(length));
      if (overridden.contains(dotted(outer))) return true;
    }
    const toml::Value* node = find(path);
    return node != nullptr && node->as<toml::Table>() != nullptr && node->line == 0;
  }

  static void add(const Path& path, Keys* keys) { (*keys)[dotted(outside(path))].insert(path.back()); }

  static bool contains(const Keys& keys, const Path& path) {
    const auto table = keys.find(dotted(outside(path)));
    return table != keys.end() && table->second.contains(path.back());
  }

  // Records a value in effect, and creates the tables and arrays on its path.
  template <typename T>
  void record(const Path& path, T&& value) {
    toml::Value* node = &in_effect;
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      const toml::Value* given = find(Path(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(i + 1)));
      const bool array_next = given != nullptr && given->as<toml::Array>() != nullptr;
      if (auto* table = node->as<toml::Table>()) {
        const toml::Value made = array_next ? toml::Value{toml::Array{}} : toml::Value{toml::Table{}};
        node = &table->try_emplace(path[i], made).first->second;
      } else {
        auto& array = *node->as<toml::Array>();
        const size_t index = *array_index(path[i]);
        while (array.size() <= index) array.push_back({toml::Table{}});
        node = &array[index];
      }
    }
    node->as<toml::Table>()->insert_or_assign(path.back(), toml::Value{std::forward<T>(value)});
  }

  // Compares values as text, so that an override which repeats the file's value replaces nothing.
  bool is_replaced(const Path& table) const {
    const auto differs = [&](std::string_view key) {
      const toml::Value* before = find_in(parsed, inside(table, key));
      const toml::Value* now = find(inside(table, key));
      return now != nullptr && (before == nullptr || toml::value_text(*before) != toml::value_text(*now));
    };
    return !table.empty() && std::any_of(kIdentities.begin(), kIdentities.end(), differs);
  }

  // For suggestions: also the permitted ones, which may be what a mistyped key meant.
  std::vector<std::string> known_keys(const Path& table) const {
    std::vector<std::string> names;
    for (const Keys* keys : {&asked, &permitted}) {
      if (const auto found = keys->find(dotted(table)); found != keys->end())
        names.insert(names.end(), found->second.begin(), found->second.end());
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  }

  // A key that was never read is dropped, allowed, or an error.
  void judge_unread(const Path& path, std::vector<std::string>* dropped) const {
    const Path table = outside(path);
    const bool is_permitted = contains(permitted, path);
    const bool may_drop = droppable.contains(dotted(path)) || droppable.contains(dotted(table));
    if (!from_override(path) && (is_replaced(table) || (may_drop && !is_permitted))) {
      dropped->push_back(dotted(path));
    } else if (!is_permitted) {
      throw input_error("{}: unknown key{}", where(path), suggestion(path.back(), known_keys(table)));
    }
  }

  // A table that was read is checked key by key; one that was not is reported as one key.
  void reject_unknown(const toml::Value& node, const Path& path, std::vector<std::string>* dropped) const {
    if (const auto* table = node.as<toml::Table>()) {
      for (const auto& [key, value] : *table) {
        const Path inner = inside(path, key);
        if (contains(asked, inner)) {
          reject_unknown(value, inner, dropped);
        } else {
          judge_unread(inner, dropped);
        }
      }
    } else if (const auto* array = node.as<toml::Array>()) {
      for (size_t i = 0; i < array->size(); ++i)
        reject_unknown((*array)[i], inside(path, std::to_string(i)), dropped);
    }
  }

  const toml::Value* read(const Path& path) {
    add(path, &asked);
    return find(path);
  }

  // The elements of an array, each converted by `element`, which returns nothing for a wrong type or range.
  template <typename T, typename Element>
  std::vector<T> read_all(const Path& path, std::vector<T> values, std::string_view expected,
                          Element element) {
    if (const toml::Value* node = read(path)) {
      const auto* array = node->as<toml::Array>();
      if (array == nullptr) throw wrong(path, *node, expected);
      values.clear();
      for (const toml::Value& found : *array) {
        const std::optional<T> value = element(found);
        if (!value) throw wrong(path, found, expected);
        values.push_back(*value);
      }
    }
    toml::Array recorded;
    for (const T& value : values) recorded.push_back({value});
    record(path, std::move(recorded));
    return values;
  }

  Error wrong(const Path& path, const toml::Value& found, std::string_view expected) const {
    return input_error("{}: found {}, expected {}", where(path), kind_of(found), expected);
  }
};

Config Config::parse(std::string_view text, std::string_view source) {
  auto document = std::make_shared<Document>();
  document->source = source;
  document->root = {toml::parse(text, source)};
  document->parsed = document->root;
  return Config(document, {});
}

Config Config::load(const std::filesystem::path& path) {
  return parse(read_text_file(path), path.string());
}

void Config::set(std::string_view key, std::string_view value) {
  Path path;
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('.', begin), key.size());
    path.emplace_back(key.substr(begin, end - begin));
    if (path.back().empty()) throw input_error("--set {}={}: the key has an empty part", key, value);
    begin = end + 1;
  }
  toml::Table parsed;
  try {
    parsed = toml::parse(fmt::format("value = {}", value), "--set");
  } catch (const Error&) {
    parsed.insert_or_assign("value", toml::Value{std::string(value)});
  }
  if (parsed.size() != 1) throw input_error("--set {}: '{}' is not one value", key, value);

  toml::Value* node = &document_->root;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    auto* next = const_cast<toml::Value*>(child(*node, path[i]));
    if (next == nullptr) {
      if (auto* table = node->as<toml::Table>())
        next = &table->try_emplace(path[i], toml::Value{toml::Table{}}).first->second;
    }
    if (next == nullptr || (next->as<toml::Table>() == nullptr && next->as<toml::Array>() == nullptr)) {
      throw input_error("--set {}: {} is not a table", key, path[i]);
    }
    node = next;
  }
  auto* table = node->as<toml::Table>();
  if (table == nullptr) throw input_error("--set {}: names an element of an array, not a key", key);
  toml::Value& given_value = parsed.find("value")->second;
  given_value.line = 0;
  table->insert_or_assign(path.back(), std::move(given_value));
  document_->overridden.insert(dotted(path));
  const std::string given = path.back();
  const std::array<std::string_view, 3> sources = {"name", "file", "folder"};
  if (path.size() < 2 || std::find(sources.begin(), sources.end(), given) == sources.end()) return;
  for (const std::string_view other : sources) {
    path.back() = other;
    if (other != given && !document_->from_override(path)) table->erase(std::string(other));
  }
}

void Config::set_all(std::span<const std::string> assignments) {
  for (const std::string& text : assignments) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw input_error("--set {}: expected key=value, as in model.clauses=300", text);
    }
    set(text.substr(0, equals), text.substr(equals + 1));
  }
}

Path Config::full_path(std::string_view key) const {
  return inside(path_, key);
}

bool Config::has(std::string_view key) const {
  return document_->read(full_path(key)) != nullptr;
}

bool Config::is_string(std::string_view key) const {
  const toml::Value* node = document_->read(full_path(key));
  return node != nullptr && node->as<std::string>() != nullptr;
}

Config Config::section(std::string_view key) const {
  const Path path = full_path(key);
  if (const toml::Value* node = document_->read(path);
      node != nullptr && node->as<toml::Table>() == nullptr) {
    throw document_->wrong(path, *node, "a table");
  }
  return Config(document_, path);
}

std::vector<Config> Config::sections(std::string_view key) const {
  const Path path = full_path(key);
  std::vector<Config> result;
  const toml::Value* node = document_->read(path);
  if (node == nullptr) return result;
  const auto* array = node->as<toml::Array>();
  if (array == nullptr) throw document_->wrong(path, *node, "an array of tables");
  for (size_t i = 0; i < array->size(); ++i) {
    const Path element = inside(path, std::to_string(i));
    const toml::Value& found = (*array)[i];
    if (found.as<toml::Table>() == nullptr) throw document_->wrong(element, found, "a table");
    result.push_back(Config(document_, element));
  }
  return result;
}

int64_t Config::integer(std::string_view key, int64_t fallback, int64_t min, int64_t max) const {
  const Path path = full_path(key);
  int64_t value = fallback;
  if (const toml::Value* node = document_->read(path)) {
    const auto* found = node->as<int64_t>();
    if (!found || *found < min || *found > max) {
      throw document_->wrong(path, *node, fmt::format("a whole number from {} to {}", min, max));
    }
    value = *found;
  }
  document_->record(path, value);
  return value;
}

double Config::number(std::string_view key, double fallback, double min, double max) const {
  const Path path = full_path(key);
  double value = fallback;
  if (const toml::Value* node = document_->read(path)) {
    const std::optional<double> found = number_of(*node);
    if (!found || !(*found >= min && *found <= max)) {
      throw document_->wrong(path, *node, fmt::format("a number from {} to {}", min, max));
    }
    value = *found;
  }
  document_->record(path, value);
  return value;
}

bool Config::flag(std::string_view key, bool fallback) const {
  const Path path = full_path(key);
  bool value = fallback;
  if (const toml::Value* node = document_->read(path)) {
    const auto* found = node->as<bool>();
    if (!found) throw document_->wrong(path, *node, "true or false");
    value = *found;
  }
  document_->record(path, value);
  return value;
}

std::string Config::text(std::string_view key, std::string_view fallback) const {
  const Path path = full_path(key);
  std::string value(fallback);
  if (const toml::Value* node = document_->read(path)) {
    const auto* found = node->as<std::string>();
    if (!found) throw document_->wrong(path, *node, "a string in quotes");
    value = *found;
  }
  document_->record(path, value);
  return value;
}

std::string Config::required_string(std::string_view key) const {
  if (!has(key)) throw input_error("{}: missing, expected a string in quotes", where(key));
  return text(key, "");
}

std::string Config::choice(std::string_view key, std::string_view fallback,
                           std::span<const std::string> known) const {
  const std::string value = text(key, fallback);
  if (std::find(known.begin(), known.end(), value) == known.end()) {
    throw input_error("{}: found '{}', expected one of: {}", where(key), value, joined(known));
  }
  return value;
}

std::vector<int64_t> Config::integers(std::string_view key, const std::vector<int64_t>& fallback, int64_t min,
                                      int64_t max) const {
  const std::string expected = fmt::format("an array of whole numbers from {} to {}", min, max);
  return document_->read_all(full_path(key), fallback, expected, [&](const toml::Value& element) {
    const auto* found = element.as<int64_t>();
    return found != nullptr && *found >= min && *found <= max ? std::optional(*found) : std::nullopt;
  });
}

std::vector<double> Config::numbers(std::string_view key, const std::vector<double>& fallback, double min,
                                    double max) const {
  const std::string expected = fmt::format("an array of numbers from {} to {}", min, max);
  return document_->read_all(full_path(key), fallback, expected, [&](const toml::Value& element) {
    const std::optional<double> found = number_of(element);
    return found && *found >= min && *found <= max ? found : std::nullopt;
  });
}

std::vector<std::string> Config::texts(std::string_view key) const {
  return document_->read_all(full_path(key), Path(), "an array of strings in quotes",
                             [](const toml::Value& element) {
                               const auto* found = element.as<std::string>();
                               return found != nullptr ? std::optional(*found) : std::nullopt;
                             });
}

void Config::permit(std::span<const std::string> keys) const {
  for (const std::string& key : keys) Document::add(full_path(key), &document_->permitted);
}

bool Config::is_replaced() const {
  return document_->is_replaced(path_);
}

void Config::allow_dropping(std::span<const std::string> keys) const {
  for (const std::string& key : keys) document_->droppable.insert(dotted(full_path(key)));
}

std::vector<std::string> Config::reject_unknown_keys() const {
  std::vector<std::string> dropped;
  document_->reject_unknown(document_->root, {}, &dropped);
  return dropped;
}

std::string Config::resolved() const {
  return toml::document_text(*document_->in_effect.as<toml::Table>());
}

std::string Config::resolved(std::span<const std::string> parts) const {
  toml::Table chosen;
  for (const std::string& part : parts) {
    if (const toml::Value* value = child(document_->in_effect, part)) chosen.insert_or_assign(part, *value);
  }
  return toml::document_text(chosen);
}

std::string Config::given() const {
  return toml::document_text(*document_->root.as<toml::Table>());
}

std::string Config::where(std::string_view key) const {
  return document_->where(full_path(key));
}

}  // namespace bitfed
