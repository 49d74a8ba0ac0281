#include "bitfed/federated/privacy/update_grid.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/federated/expect_tensors.h"

namespace bitfed {
namespace {

// Precise values are sent as a whole number and the rest, each with room for the largest weight of the most
// clients: 2^24 * 2^16 * 2^20 = 2^60, and 2^-1 * 2^24 * 2^16 * 2^20 = 2^59.
constexpr uint32_t kPreciseBits = ModularVector::kMaxBits;
constexpr double kPreciseRange = 1 << 24;
constexpr double kPreciseOne = 1 << 24;
constexpr uint32_t kWeightBits = 38;

constexpr uint64_t kMaxFields = 1 << 16;
constexpr uint64_t kMaxElements = uint64_t{1} << 31;

// Noise beyond so many standard deviations would wrap around: a chance of e^-128 an element.
constexpr double kNoiseDeviations = 16;

// The bits of an element whose sum over all clients lies within ± max_clients * max_weight * largest, and
// noise beside it. `bound`: of the norm of what it is part of.
uint32_t bits_for(const UpdateGrid& grid, double largest, double bound) {
  const double noise = kNoiseDeviations * std::sqrt(grid.max_clients) * grid.noise * bound;
  const double sum = std::ceil(largest) * grid.max_weight * grid.max_clients + std::ceil(noise);
  return sum < 0x1p60 ? 1 + static_cast<uint32_t>(std::bit_width(static_cast<uint64_t>(sum)))
                      : ModularVector::kMaxBits + 1;
}

uint32_t change_bits(const UpdateGrid& grid) {
  const double largest = std::ldexp(grid.range, static_cast<int>(grid.bits));
  return bits_for(grid, largest, largest);
}

// The bits of a vote among all those of an update, each of which is 1 or -1.
uint32_t vote_bits(const UpdateGrid& grid, const SumParts& parts) {
  double votes = 0;
  for (const SumPart& part : parts) {
    if (part.kind == SumKind::kVote) votes += static_cast<double>(part.count);
  }
  return bits_for(grid, 1, std::sqrt(votes));
}

// One step through an update: a run of values and what becomes of them.
struct Element {
  uint32_t bits = 1;
  double one = 1;    // what a value of 1 becomes, for a client of weight 1
  double range = 1;  // of values
};

Element element_of(const UpdateGrid& grid, const SumParts& parts, SumKind kind) {
  switch (kind) {
    case SumKind::kChange:
      return {change_bits(grid), std::ldexp(1, static_cast<int>(grid.bits)), grid.range};
    case SumKind::kVote:
      return {vote_bits(grid, parts), 1, 1};
    case SumKind::kPrecise:
      break;
  }
  return {kPreciseBits, kPreciseOne, kPreciseRange};
}

uint64_t weight_of(const ModularVector& vector) {
  return vector.values.back();
}

}  // namespace

bool UpdateGrid::fits() const {
  return change_bits(*this) <= ModularVector::kMaxBits;
}

std::vector<ModularField> UpdateGrid::fields(const SumParts& parts) const {
  std::vector<ModularField> fields;
  for (const SumPart& part : parts) {
    const uint64_t count = part.kind == SumKind::kPrecise ? 2 * part.count : part.count;
    fields.push_back({count, element_of(*this, parts, part.kind).bits});
  }
  fields.push_back({1, kWeightBits});
  return fields;
}

ModularVector to_grid(const UpdateGrid& grid, const ClientUpdate& update) {
  assert(update.weight >= 1 && update.weight <= grid.max_weight);
  ModularVector vector{grid.fields(update.parts), {}};
  vector.values.reserve(elements_of(vector.fields));
  const double weight = update.weight;
  const double* next = update.values.data();
  for (const SumPart& part : update.parts) {
    const Element element = element_of(grid, update.parts, part.kind);
    const auto put = [&](double value) {
      vector.values.push_back(to_modular(std::llrint(weight * value), element.bits));
    };
    for (size_t i = 0; i < part.count; ++i) {
      const double value = *next++;
      if (!(std::fabs(value) <= element.range)) {
        if (part.kind != SumKind::kChange)
          throw failure("found a value of {}, expected within ±{} to be summed", value, element.range);
        throw failure(
            "found a parameter that changed by {}, expected within ±{}: raise privacy.update_range, or lower "
            "client.learning_rate",
            value, element.range);
      }
      if (part.kind == SumKind::kPrecise) {
        const double whole = std::rint(value);
        put(whole);
        put((value - whole) * element.one);
      } else {
        put(value * element.one);
      }
    }
  }
  vector.values.push_back(update.weight);
  return vector;
}

UpdateMean from_grid(const UpdateGrid& grid, const SumParts& parts, const ModularVector& sum,
                     size_t clients) {
  assert(sum.fields == grid.fields(parts));
  UpdateMean mean;
  mean.weight = weight_of(sum);
  mean.clients = clients;
  const auto weight = static_cast<double>(mean.weight);
  const uint64_t* next = sum.values.data();
  for (const SumPart& part : parts) {
    const Element element = element_of(grid, parts, part.kind);
    const auto take = [&] { return static_cast<double>(from_modular(*next++, element.bits)); };
    for (size_t i = 0; i < part.count; ++i) {
      double total = part.kind == SumKind::kPrecise ? take() : 0;
      total += take() / element.one;
      mean.values.push_back(total / weight);
    }
  }
  return mean;
}

void check_on_grid(const UpdateGrid& grid, const SumParts& parts, const ModularVector& update,
                   std::string_view source) {
  assert(update.fields == grid.fields(parts));
  const uint64_t weight = weight_of(update);
  if (weight < 1 || weight > grid.max_weight)
    throw input_error("{}: found a weight of {}, expected 1 to {}", source, weight, grid.max_weight);
  const uint64_t* next = update.values.data();
  for (const SumPart& part : parts) {
    const Element element = element_of(grid, parts, part.kind);
    const auto check = [&](double largest) {
      const auto value = static_cast<double>(from_modular(*next++, element.bits));
      if (!(std::fabs(value) <= largest * static_cast<double>(weight) + 0.5))
        throw input_error("{}: found an element of {}, expected within ±{} times the weight {}", source,
                          value, largest, weight);
    };
    for (size_t i = 0; i < part.count; ++i) {
      if (part.kind == SumKind::kPrecise) check(element.range);
      check(part.kind == SumKind::kPrecise ? element.one / 2 : element.one * element.range);
    }
  }
}

State sum_message(const ModularVector& vector) {
  State message;
  std::vector<uint32_t> fields;
  for (const ModularField& field : vector.fields)
    fields.insert(fields.end(), {static_cast<uint32_t>(field.count), field.bits});
  message.add("fields", {vector.fields.size(), 2}, fields);
  const Bytes elements = vector.pack();
  message.add("elements", {elements.size()}, elements);
  return message;
}

ModularVector read_sum_message(const State& message) {
  const auto numbers = message.values<uint32_t>("fields", {State::kAny, 2});
  if (numbers.empty() || numbers.size() > 2 * kMaxFields)
    throw input_error("{}: tensor 'fields': found {} fields, expected 1 to {}", message.source(),
                      numbers.size() / 2, kMaxFields);
  std::vector<ModularField> fields;
  uint64_t elements = 0;
  for (size_t i = 0; i < numbers.size(); i += 2) {
    if (numbers[i] > kMaxElements - elements || numbers[i + 1] < 1 ||
        numbers[i + 1] > ModularVector::kMaxBits) {
      throw input_error("{}: tensor 'fields': found {} elements of {} bits, expected at most {} of 1 to {}",
                        message.source(), numbers[i], numbers[i + 1], kMaxElements, ModularVector::kMaxBits);
    }
    elements += numbers[i];
    fields.push_back({numbers[i], numbers[i + 1]});
  }
  expect_tensors(message, 2);
  return ModularVector::unpack(std::move(fields), message.values<uint8_t>("elements", {State::kAny}),
                               message.source() + ": tensor 'elements'");
}

}  // namespace bitfed
