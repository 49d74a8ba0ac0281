#pragma once

#include <string>
#include <vector>

#include "bitfed/run/run_folder.h"

namespace bitfed {

// One self-contained HTML page about one run or several: no scripts, nothing fetched from elsewhere.
std::string report_page(const std::vector<RunFolder>& runs);

}  // namespace bitfed
