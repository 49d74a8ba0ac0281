#pragma once

#include <string>

namespace bitfed {

// "Intel(R) Xeon(R) Processor @ 2.80GHz, 2 processors": beside times, so that they can be judged.
std::string describe_machine();

}  // namespace bitfed
