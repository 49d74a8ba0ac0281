#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bitfed/run/run_folder.h"

namespace bitfed {

// A row per client (SVG): the accuracy of the global model and of its own, joined by a line, and the
// difference in percentage points. `clients` in the order of the rows, all with both accuracies.
std::string gains_picture(const std::vector<ClientAccuracy>& clients);

// One client (SVG): its two accuracies as bars, and below them its training samples of each class, of which
// `full` make a bar of full length.
struct ClientPicture {
  ClientAccuracy client;
  std::vector<uint32_t> class_counts;
  std::vector<std::string> class_names;  // missing ones are numbered
  uint32_t full = 0;
};

std::string client_picture(const ClientPicture& picture);

}  // namespace bitfed
