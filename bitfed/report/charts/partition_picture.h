#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bitfed {

// Who holds what, as a picture (SVG): a column a client, a row a class, a cell's shade the client's
// samples of that class, bars for the clients' totals. `counts` is as class_counts() gives it: a row a
// client. Missing class names are numbered; so are the clients, unless they are people with names.
std::string partition_picture(const std::vector<std::vector<uint32_t>>& counts,
                              const std::vector<std::string>& class_names, const std::string& title,
                              const std::vector<std::string>& people = {});

// What the confusion matrix says (SVG): rows the true class, columns the predicted one.
std::string confusion_picture(const std::vector<std::vector<uint64_t>>& counts,
                              const std::vector<std::string>& class_names, const std::string& title);

}  // namespace bitfed
