#pragma once

#include <fmt/ranges.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bitfed/base/error.h"

namespace bitfed {

// Structs that stand in files as JSON objects list their fields once, in the order of the file:
//
//   static void fields(auto& self, auto& field) {
//     field("round", self.round);                  // always written; an empty std::optional as null
//     field.if_set("port", self.port);             // left out where the std::optional is empty
//     field.spread("accuracy", self.scores);       // an optional struct whose fields, the first being
//   }                                              // "accuracy", stand in this same object
//
// write_fields and read_fields both walk that list, so the writer and the reader of a format cannot disagree.
// A struct with a kKind is an event: its object begins with {"event": kKind}.

// Accepts any list of fields; only for the concept below.
struct AnyField {
  void operator()(const char* name, auto& value);
  void if_set(const char* name, auto& value);
  void spread(const char* name, auto& value);
};

template <typename T>
concept HasFields = requires(T& value, AnyField& field) {
  T::fields(value, field);
};

// An enumeration with `constexpr std::array names_of(Enum)`: the names of its values 0, 1, 2, …
template <typename T>
concept HasNames = requires(T value) {
  names_of(value);
};

template <HasFields T>
nlohmann::ordered_json write_fields(const T& value);

class FieldWriter {
 public:
  void operator()(const char* name, const auto& value) { object[name] = json_of(value); }
  void if_set(const char* name, const auto& optional) {
    if (optional) (*this)(name, *optional);
  }
  template <typename T>
  void spread(const char* /*name*/, const std::optional<T>& optional) {
    if (optional) T::fields(*optional, *this);
  }

  nlohmann::ordered_json object = nlohmann::ordered_json::object();

 private:
  template <typename T>
  static nlohmann::ordered_json json_of(const T& value) {
    if constexpr (HasFields<T>) {
      return write_fields(value);
    } else if constexpr (HasNames<T>) {
      return names_of(value)[static_cast<size_t>(value)];
    } else {
      return value;
    }
  }
  template <typename T>
  static nlohmann::ordered_json json_of(const std::optional<T>& value) {
    return value ? json_of(*value) : nlohmann::ordered_json();
  }
  template <typename T>
  static nlohmann::ordered_json json_of(const std::vector<T>& values) {
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    for (const T& value : values) array.push_back(json_of(value));
    return array;
  }
};

template <HasFields T>
nlohmann::ordered_json write_fields(const T& value) {
  FieldWriter writer;
  if constexpr (requires { T::kKind; }) writer.object["event"] = T::kKind;
  T::fields(value, writer);
  return std::move(writer.object);
}

// Fields that are not in the list are ignored. A missing or null field leaves a std::optional, string or
// vector empty; of any other type it must be there. What has another type is an input_error.
template <HasFields T>
T read_fields(const nlohmann::json& json, const std::string& where);

class FieldReader {
 public:
  FieldReader(const nlohmann::json& object, const std::string& where) : object_(object), where_(where) {}

  template <typename T>
  void operator()(const char* name, T& value) const {
    const nlohmann::json* found = find(name);
    if (found != nullptr) {
      read(*found, path(name), value);
    } else if constexpr (!may_be_missing(static_cast<T*>(nullptr))) {
      throw input_error("{}: found nothing, expected {}", path(name), expected<T>());
    }
  }
  void if_set(const char* name, auto& optional) const { (*this)(name, optional); }
  template <typename T>
  void spread(const char* name, std::optional<T>& optional) const {
    if (find(name) != nullptr) T::fields(optional.emplace(), *this);
  }

 private:
  static constexpr bool may_be_missing(void* /*any other type*/) { return false; }
  static constexpr bool may_be_missing(std::string*) { return true; }
  template <typename T>
  static constexpr bool may_be_missing(std::optional<T>*) {
    return true;
  }
  template <typename T>
  static constexpr bool may_be_missing(std::vector<T>*) {
    return true;
  }

  template <typename T>
  static constexpr const char* expected() {
    if constexpr (HasNames<T>) return "the name of a value";
    if constexpr (std::same_as<T, bool>) return "true or false";
    if constexpr (std::unsigned_integral<T>) return "a count";
    if constexpr (std::signed_integral<T>) return "a whole number";
    return std::floating_point<T> ? "a number" : "an object";
  }

  template <typename T>
  static void read(const nlohmann::json& json, const std::string& where, T& value) {
    if constexpr (HasFields<T>) {
      value = read_fields<T>(json, where);
    } else if constexpr (HasNames<T>) {
      const auto names = names_of(value);
      for (size_t i = 0; i < names.size(); ++i) {
        if (json == names[i]) {
          value = static_cast<T>(i);
          return;
        }
      }
      throw input_error("{}: found {}, expected one of: {}", where, json.dump(), fmt::join(names, ", "));
    } else if constexpr (std::same_as<T, bool>) {
      if (!json.is_boolean()) throw mismatch(json, where, expected<T>());
      value = json.get<bool>();
    } else if constexpr (std::unsigned_integral<T>) {
      if (!json.is_number_unsigned() || json.get<uint64_t>() > std::numeric_limits<T>::max())
        throw mismatch(json, where, expected<T>());
      value = json.get<T>();
    } else if constexpr (std::same_as<T, int64_t>) {
      if (!json.is_number_integer()) throw mismatch(json, where, expected<T>());
      value = json.get<T>();
    } else {
      static_assert(std::floating_point<T>);
      if (!json.is_number()) throw mismatch(json, where, expected<T>());
      value = json.get<T>();
    }
  }
  static void read(const nlohmann::json& json, const std::string& where, std::string& value) {
    if (!json.is_string()) throw mismatch(json, where, "a string");
    value = json.get<std::string>();
  }
  template <typename T>
  static void read(const nlohmann::json& json, const std::string& where, std::optional<T>& value) {
    read(json, where, value.emplace());
  }
  template <typename T>
  static void read(const nlohmann::json& json, const std::string& where, std::vector<T>& values) {
    if (!json.is_array()) throw mismatch(json, where, "an array");
    values.clear();
    for (const nlohmann::json& element : json) {
      const std::string place = fmt::format("{}[{}]", where, values.size());
      read(element, place, values.emplace_back());
    }
  }

  static Error mismatch(const nlohmann::json& json, const std::string& where, std::string_view expected) {
    const std::string found = json.is_number() ? json.dump() : json.type_name();
    return input_error("{}: found {}, expected {}", where, found, expected);
  }

  const nlohmann::json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::string path(const char* name) const { return fmt::format("{}: {}", where_, name); }

  template <HasFields T>
  friend T read_fields(const nlohmann::json& json, const std::string& where);

  const nlohmann::json& object_;
  const std::string& where_;
};

template <HasFields T>
T read_fields(const nlohmann::json& json, const std::string& where) {
  if (!json.is_object()) throw FieldReader::mismatch(json, where, "an object");
  T value;
  const FieldReader reader(json, where);
  T::fields(value, reader);
  return value;
}

}  // namespace bitfed
