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

// A recipe (TOML), or one table of it. Reading a key checks its type and range, fills in the default,
// and remembers both the key and the value in effect: what nobody has asked for is an unknown key, and
// what was asked for is the recipe as resolved. Errors name the file, the line, the key, what was found
// and what was expected. Copies are views of the same document.
class Config {
 public:
  static Config parse(std::string_view text, std::string_view source);
  static Config load(const std::filesystem::path& path);

  // Overrides one value: "model.clauses" and a TOML value; what does not parse as one is taken as a
  // string, so that method.name=fedtmos needs no quotes.
  void set(std::string_view key, std::string_view value);
  // The same for texts such as "model.clauses=300", in order.
  void set_all(std::span<const std::string> assignments);

  bool has(std::string_view key) const;
  // Whether the key is there and a text: for values that are a number or a word.
  bool is_text(std::string_view key) const;
  // A table within this one; reads of an absent one give the defaults.
  Config section(std::string_view key) const;
  // The tables of an array of tables, [[like.this]]; none if absent.
  std::vector<Config> sections(std::string_view key) const;

  int64_t integer(std::string_view key, int64_t fallback, int64_t least = 0,
                  int64_t most = std::numeric_limits<int32_t>::max()) const;
  double number(std::string_view key, double fallback, double least, double most) const;
  bool flag(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  std::string choice(std::string_view key, std::string_view fallback,
                     std::span<const std::string> known) const;
  std::vector<int64_t> integers(std::string_view key, const std::vector<int64_t>& fallback, int64_t least,
                                int64_t most) const;
  std::vector<double> numbers(std::string_view key, const std::vector<double>& fallback, double least,
                              double most) const;
  std::vector<std::string> texts(std::string_view key) const;  // none where the key is absent
  // The same reads without a fallback: an absent key is an error.
  std::string required_text(std::string_view key) const;

  // Keys that mean nothing to this reader but may stand here, such as those of methods that are compared
  // with this one on the same recipe. They are not part of the recipe as resolved.
  void permit(std::span<const std::string> keys) const;

  // Throws for the first key that no read has asked for, with the nearest one that was.
  void reject_unknown_keys() const;

  // The values in effect, as TOML: the whole document, or the named top-level parts of it.
  std::string resolved() const;
  std::string resolved(std::span<const std::string> parts) const;

  // The document as it was given, overrides applied: the same text for the same values, however written.
  std::string given() const;

  // "recipe.toml: line 7: model.clauses", for errors about a value that only its reader can judge.
  std::string where(std::string_view key) const;

 private:
  struct Document;
  Config(std::shared_ptr<Document> document, std::vector<std::string> path)
      : document_(std::move(document)), path_(std::move(path)) {}
  std::vector<std::string> full_path(std::string_view key) const;

  std::shared_ptr<Document> document_;
  std::vector<std::string> path_;  // keys from the root; an array's element as its number
};

}  // namespace bitfed
