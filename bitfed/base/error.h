#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace bitfed {

// The one exception type of the library. Its text is one line that names the file or field, what was
// found and what was expected; the program prints it as it is.
class Error : public std::runtime_error {
 public:
  enum class Kind {
    kInput,    // a file, recipe, message or argument is not what it should be: exit status 2
    kFailure,  // the work itself failed (a full disk, a lost connection): exit status 1
    kStopped,  // the user asked to stop; what was finished is kept: exit status 1
  };

  Error(Kind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

template <typename... Args>
Error input_error(fmt::format_string<Args...> text, Args&&... args) {
  return Error(Error::Kind::kInput, fmt::format(text, std::forward<Args>(args)...));
}

template <typename... Args>
Error failure(fmt::format_string<Args...> text, Args&&... args) {
  return Error(Error::Kind::kFailure, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace bitfed
