#pragma once

#include <string>

namespace bitfed {

// "Intel(R) Xeon(R) Processor @ 2.80GHz, 2 processors": reported next to measured times.
std::string describe_machine();

}  // namespace bitfed
