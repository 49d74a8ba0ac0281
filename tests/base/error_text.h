#pragma once

#include <string>

#include "bitfed/base/error.h"

namespace bitfed {

// The text of the error that `action` throws, "" if it throws none; `kind` is what it must be.
template <typename Action>
std::string error_text(Action action, Error::Kind kind = Error::Kind::kInput) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind() == kind ? error.what() : std::string("wrong kind of error: ") + error.what();
  }
  return "";
}

}  // namespace bitfed
