#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bitfed/base/error.h"

namespace bitfed::cli {

// Values of the command line: input_errors "found X, expected Y" for text that is none.
void read_value(const std::string& text, std::string* value);
void read_value(const std::string& text, std::filesystem::path* value);
void read_value(const std::string& text, int* value);
void read_value(const std::string& text, unsigned* value);
void read_value(const std::string& text, int64_t* value);
void read_value(const std::string& text, uint64_t* value);
void read_value(const std::string& text, double* value);

template <typename T>
void read_value(const std::string& text, std::optional<T>* value) {
  read_value(text, &value->emplace());
}

// For the help.
template <typename T>
std::string default_text(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else {
    return "";
  }
}

// An option or argument of a command.
class Option {
 public:
  Option* required();
  Option* type_name(std::string name);  // what the help calls the value
  Option* between(double min, double max);
  Option* at_least(double min);
  Option* one_of(std::vector<std::string> words);
  Option* show_default();  // in the help: what the variable has before the command line is read
  Option* excludes(const Option* other);
  // Of several values: --set a --set b, but not --set a b; or a,b in one.
  Option* one_at_a_time();
  Option* separated_by(char separator);

 private:
  friend class Command;
  using Read = std::function<void(const std::string& text, bool is_first)>;
  enum class Takes { kNothing, kOne, kSeveral };

  Option(const std::string& names, std::string description, Takes takes, Read read, std::string initial = "");
  bool is_positional() const { return names_.front()[0] != '-'; }
  std::string name() const { return names_.front(); }  // the first one, for errors
  std::string usage() const;
  std::string type() const;
  void give(const std::string& text);

  std::vector<std::string> names_;
  std::string description_;
  Takes takes_;
  Read read_;
  std::string type_;
  std::string initial_;
  std::optional<double> min_;
  std::optional<double> max_;
  std::vector<std::string> words_;
  std::vector<const Option*> excluded_;
  char separator_ = '\0';
  bool is_required_ = false;
  bool shows_initial_ = false;
  bool is_greedy_ = true;
  size_t given_ = 0;
};

// A command of the program with its options, arguments and subcommands. Variables must outlive it: the
// callback owns them.
class Command {
 public:
  Command(std::string name, std::string description);

  Command* add_subcommand(const std::string& name, const std::string& description);

  // "--name", "--name,--earlier-name" or "ARGUMENT". A vector takes several values, which replace its own.
  template <typename T>
  Option* add_option(const std::string& names, T& value, const std::string& description) {
    return add({names, description, Option::Takes::kOne,
                [&value](const std::string& text, bool /*is_first*/) { read_value(text, &value); },
                default_text(value)})
        ->type_name(std::is_arithmetic_v<T> ? "N" : "TEXT");
  }
  template <typename T>
  Option* add_option(const std::string& names, std::vector<T>& values, const std::string& description) {
    return add({names, description, Option::Takes::kSeveral,
                [&values](const std::string& text, bool is_first) {
                  if (is_first) values.clear();
                  read_value(text, &values.emplace_back());
                }})
        ->type_name(std::is_arithmetic_v<T> ? "N" : "TEXT");
  }
  Option* add_flag(const std::string& name, bool& value, const std::string& description);

  void set_version(const std::string& version) { version_ = version; }
  void footer(const std::string& text) { footer_ = text; }
  void callback(std::function<void()> callback) { callback_ = std::move(callback); }
  void accept_anything() { accepts_anything_ = true; }  // any options and arguments, which are not read

  // Reads the command line and calls the command that it names, or prints the help or version it asks for.
  // What is wrong is an input_error.
  void run(int argc, const char* const* argv);

  std::string help() const;

 private:
  Option* add(Option option);
  void parse(std::vector<std::string> words);
  void parse_option(const std::string& word, const std::vector<std::string>& words, size_t* at);
  void parse_argument(const std::string& word);
  void give(Option* option, const std::string& name, const std::string& text) const;
  void check() const;
  Option* find(std::string_view name) const;
  Error wrong(const std::string& what) const;

  std::string name_;  // with those of the commands above it
  std::string description_;
  std::string footer_;
  std::string version_;
  std::function<void()> callback_;
  bool accepts_anything_ = false;
  std::vector<std::unique_ptr<Option>> options_;
  std::vector<std::unique_ptr<Command>> subcommands_;
};

}  // namespace bitfed::cli
