#pragma once

#include <cstdint>
#include <optional>

#include "bitfed/base/config.h"
#include "bitfed/federated/privacy/update_grid.h"

namespace bitfed {

// The recipe's [privacy]: how updates are summed, and what hides them.
struct PrivacyRecipe {
  std::optional<UpdateGrid> grid;   // empty: the server receives each client's upload as the method makes it
  bool equal_weights = false;       // every client counts the same, whatever its samples
  bool secure_aggregation = false;  // updates are masked, and only their sum is opened,
  uint32_t min_survivors = 3;       // of at least so many clients;
  double phase_seconds = 60;        // a served round waits so long in each phase for clients that are away
};

// `clients`: the most that one round can have; 0: the recipe must say it. An input_error where [federation]
// asks for something that only single updates can give.
PrivacyRecipe read_privacy(const Config& recipe, uint32_t clients);

}  // namespace bitfed
