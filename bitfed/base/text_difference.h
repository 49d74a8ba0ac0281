#pragma once

#include <string>
#include <string_view>

namespace bitfed {

// "'epochs = 10' there, 'epochs = 30' here": the first line in which two strings differ.
std::string first_difference(std::string_view there, std::string_view here);

}  // namespace bitfed
