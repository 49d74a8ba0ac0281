#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bitfed {

// The partition as a picture (SVG): a column per client, a row per class, the shade of a cell for the
// client's samples of that class, bars for the clients' totals. `counts` as class_counts() returns it: a row
// per client. Missing class names are numbered; so are the clients, unless they are people with names.
std::string partition_picture(const std::vector<std::vector<uint32_t>>& counts,
                              const std::vector<std::string>& class_names, const std::string& title,
                              const std::vector<std::string>& people = {});

// The confusion matrix (SVG): rows are true classes, columns predicted ones.
std::string confusion_picture(const std::vector<std::vector<uint64_t>>& counts,
                              const std::vector<std::string>& class_names, const std::string& title);

}  // namespace bitfed
