#pragma once

#include <cstdint>
#include <string_view>

#include "bitfed/base/modular_vector.h"
#include "bitfed/federated/privacy/summed_update.h"
#include "bitfed/model/state.h"

namespace bitfed {

// The grid on which updates are summed: a client sends round(weight * value * 2^bits) for every value, and
// its weight as one more element, as integers modulo a power of two that has room for the sum of all clients.
// Sums of such integers are exact: masks that cancel leave no trace.
struct UpdateGrid {
  static constexpr uint32_t kMaxClients = 1 << 20;
  static constexpr uint32_t kMaxWeight = (1 << 16) - 1;

  uint32_t bits = 16;                // after the binary point
  double range = 16;                 // of a change: beyond ± this a client fails
  uint32_t max_clients = 1024;       // of a round
  uint32_t max_weight = kMaxWeight;  // of a client
  // Where clients add noise: the standard deviation of one client's, over the bound of its update.
  double noise = 0;

  bool fits() const;  // the elements, into ModularVector

  // The elements of an update; the last field is the weight.
  std::vector<ModularField> fields(const SumParts& parts) const;
};

// An Error for a value beyond the range.
ModularVector to_grid(const UpdateGrid& grid, const ClientUpdate& update);

// The mean that the sum of `clients` updates gives.
UpdateMean from_grid(const UpdateGrid& grid, const SumParts& parts, const ModularVector& sum, size_t clients);

// For updates that are not masked: an input_error unless the weight is from 1 to the largest and every value
// lies within the range.
void check_on_grid(const UpdateGrid& grid, const SumParts& parts, const ModularVector& update,
                   std::string_view source);

// The message: the tensors "fields" (count and bits of each) and "elements".
State sum_message(const ModularVector& vector);
ModularVector read_sum_message(const State& message);

}  // namespace bitfed
