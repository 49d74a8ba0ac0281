#pragma once

#include <string>
#include <string_view>

#include "bitfed/run/run_folder.h"

namespace bitfed {

// Parses summary.json; `source` is the file's name for errors.
RunSummary parse_summary(std::string_view text, const std::string& source);

}  // namespace bitfed
