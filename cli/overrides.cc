#include "cli/overrides.h"

#include "bitfed/base/error.h"

namespace bitfed::cli {

void apply_overrides(const std::vector<std::string>& overrides, Config* recipe) {
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw input_error("--set {}: expected key=value, as in model.clauses=300", text);
    }
    recipe->set(text.substr(0, equals), text.substr(equals + 1));
  }
}

}  // namespace bitfed::cli
