#pragma once

#include <filesystem>
#include <string>

#include "bitfed/base/byte_io.h"
#include "bitfed/model/state.h"

namespace bitfed {

// write_state() with parts, past the system's page cache, see write_file_directly.
void write_state_directly(const std::filesystem::path& path, const State& state, const std::string& name,
                          const ByteParts& parts);

}  // namespace bitfed
