#include "bitfed/federated/mlp/mlp_messages.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "bitfed/base/error.h"
#include "bitfed/federated/arithmetic/exact_mean.h"
#include "bitfed/nn/products/sign_bits.h"

namespace bitfed {
namespace {

// Rounds to nearest, ties to even; parameters are finite and far below the largest float.
uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// bfloat16 is the upper half of a float.
float from_bfloat16(uint16_t value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

std::vector<float> norms_of(const MlpParameters& parameters) {
  std::vector<float> norms = parameters.shifts;
  norms.insert(norms.end(), parameters.means.begin(), parameters.means.end());
  norms.insert(norms.end(), parameters.variances.begin(), parameters.variances.end());
  return norms;
}

}  // namespace

// Tensors "weights" (floats) or "signs" (packed bits), and "norms": shifts, means and variances of all units.
void add_parameters(const MlpParameters& parameters, MlpPrecision precision, State* message) {
  const std::vector<float> norms = norms_of(parameters);
  const uint64_t units = parameters.shifts.size();
  if (precision == MlpPrecision::kFloats) {
    message->add("weights", {parameters.weights.size()}, parameters.weights);
    message->add("norms", {3, units}, norms);
    return;
  }
  const std::vector<uint8_t> signs = pack_signs(parameters.weights);
  message->add("signs", {signs.size()}, signs);
  Bytes bytes;
  for (const float norm : norms) {
    const uint16_t half = to_bfloat16(norm);
    bytes.push_back(static_cast<uint8_t>(half & 0xff));
    bytes.push_back(static_cast<uint8_t>(half >> 8));
  }
  message->add(Tensor{"norms", Dtype::kBF16, {3, units}, std::move(bytes)});
}

MlpParameters read_parameters(const State& message, const MlpShape& shape) {
  MlpParameters parameters;
  std::vector<float> norms;
  const uint64_t units = shape.units();
  if (message.has("signs")) {
    const auto signs = message.values<uint8_t>("signs", {(shape.weights() + 7) / 8});
    parameters.weights = unpack_signs(signs, shape.weights(), "signs");
    const Bytes& bytes = message.expect("norms", Dtype::kBF16, {3, units}).bytes;
    for (size_t i = 0; i < bytes.size(); i += 2)
      norms.push_back(from_bfloat16(static_cast<uint16_t>(bytes[i] | bytes[i + 1] << 8)));
  } else {
    parameters.weights = message.values<float>("weights", {shape.weights()});
    norms = message.values<float>("norms", {3, units});
  }
  for (const auto* values : {&parameters.weights, &norms}) {
    if (!ExactMean::fits(*values)) {
      throw input_error("tensor '{}': expected finite values within ±{}",
                        values == &norms ? "norms" : "weights", ExactMean::kLargest);
    }
  }
  const auto part = [&](size_t index) {
    const auto first = norms.begin() + static_cast<std::ptrdiff_t>(index * units);
    return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(units));
  };
  parameters.shifts = part(0);
  parameters.means = part(1);
  parameters.variances = part(2);
  const auto& variances = parameters.variances;
  if (std::any_of(variances.begin(), variances.end(), [](float variance) { return variance < 0; }))
    throw input_error("tensor 'norms': found a negative variance");
  return parameters;
}

void add_scaling(const ColumnScaling& scaling, State* message) {
  std::vector<float> both = scaling.offset;
  both.insert(both.end(), scaling.factor.begin(), scaling.factor.end());
  message->add("scaling", {2, scaling.offset.size()}, both);
  message->add_scalar("limit", scaling.limit);
}

ColumnScaling read_scaling(const State& message, size_t columns) {
  const std::vector<float> both = message.values<float>("scaling", {2, columns});
  const auto limit = message.scalar<float>("limit");
  if (!std::all_of(both.begin(), both.end(), [](float value) { return std::isfinite(value); }))
    throw input_error("tensor 'scaling': expected finite values");
  if (!(limit >= 0) || !std::isfinite(limit))
    throw input_error("tensor 'limit': found {}, expected a finite number from 0 on", limit);
  const auto middle = both.begin() + static_cast<std::ptrdiff_t>(columns);
  return {{both.begin(), middle}, {middle, both.end()}, limit};
}

}  // namespace bitfed
