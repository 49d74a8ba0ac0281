#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitfed {

// A recipe (TOML), or one table of it. Reading a key checks its type and range, fills in the default, and
// records both the key and the value in effect. Keys that were never read are unknown keys; the recorded
// values are the recipe as resolved. Errors name the file, the line, the key, what was found and what was
// expected. Copies are views of the same document. Not thread-safe: a read records.
class Config {
 public:
  static Config parse(std::string_view text, std::string_view source);
  static Config load(const std::filesystem::path& path);

  // Overrides one value: "model.clauses" and a TOML value. A value that does not parse is taken as a string,
  // so that method.name=fedtmos needs no quotes. A table's `name`, `file` and `folder` exclude each other:
  // setting one removes the others that came from the document.
  void set(std::string_view key, std::string_view value);
  // The same for strings such as "model.clauses=300", in order.
  void set_all(std::span<const std::string> assignments);

  bool has(std::string_view key) const;
  // The name that a renamed key has here: the earlier one unless the new one is present.
  std::string_view name_in_use(std::string_view name, std::string_view earlier) const {
    return has(name) ? name : earlier;
  }
  // Whether the key is present and a string: for values that are a number or a word.
  bool is_string(std::string_view key) const;
  // A table within this one; reads of an absent table give the defaults.
  Config section(std::string_view key) const;
  // The tables of an array of tables, [[like.this]]; none if absent.
  std::vector<Config> sections(std::string_view key) const;

  int64_t integer(std::string_view key, int64_t fallback, int64_t min = 0,
                  int64_t max = std::numeric_limits<int32_t>::max()) const;
  double number(std::string_view key, double fallback, double min, double max) const;
  bool flag(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  std::string choice(std::string_view key, std::string_view fallback,
                     std::span<const std::string> known) const;
  std::vector<int64_t> integers(std::string_view key, const std::vector<int64_t>& fallback, int64_t min,
                                int64_t max) const;
  std::vector<double> numbers(std::string_view key, const std::vector<double>& fallback, double min,
                              double max) const;
  std::vector<std::string> texts(std::string_view key) const;  // empty where the key is absent
  // The same read without a fallback: an absent key is an error.
  std::string required_string(std::string_view key) const;

  // Keys that mean nothing to this reader but are allowed here, such as the keys of methods that are compared
  // with this one on the same recipe. They are not part of the recipe as resolved.
  void permit(std::span<const std::string> keys) const;

  // Whether an override gave this table another `name`, `file` or `kind` than the document's: its other keys
  // may then belong to what was replaced.
  bool is_replaced() const;

  // Allows these keys of the document, and the keys in tables of these names, to stay unread because they
  // belong to what an override replaced elsewhere. A key that is itself an override must still be read.
  void allow_dropping(std::span<const std::string> keys) const;

  // Throws for the first key that was never read, and suggests the nearest key that was. The document's
  // unread keys in replaced tables, and the keys allowed above, are no error: they are returned, as
  // "method.clusters".
  std::vector<std::string> reject_unknown_keys() const;

  // The values in effect, as TOML: the whole document, or the named top-level parts of it.
  std::string resolved() const;
  std::string resolved(std::span<const std::string> parts) const;

  // The document as given, with overrides applied: equal values give equal text, however they were written.
  std::string given() const;

  // "recipe.toml: line 7: model.clauses", for errors about a value that only its reader can check.
  std::string where(std::string_view key) const;

 private:
  struct Document;
  Config(std::shared_ptr<Document> document, std::vector<std::string> path)
      : document_(std::move(document)), path_(std::move(path)) {}
  std::vector<std::string> full_path(std::string_view key) const;

  std::shared_ptr<Document> document_;
  std::vector<std::string> path_;  // keys from the root; an array's element by its index
};

}  // namespace bitfed
