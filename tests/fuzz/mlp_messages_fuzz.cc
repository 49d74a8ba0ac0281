#include "bitfed/federated/mlp/column_ranges.h"
#include "bitfed/federated/mlp/mlp_messages.h"
#include "tests/fuzz/fuzzed_state.h"

namespace {

using namespace bitfed;

const MlpShape kShape{{3, 5, 2}, true};
constexpr size_t kColumns = 3;

// What `read` gives, or nothing where it refuses the message.
template <typename Read>
auto accepted(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    check_refusal(error);
    return std::nullopt;
  }
}

// Parameters and a scaling that were accepted make a model that can be written and read, and go on as they
// are. An Error from here is a finding.
void use(const ColumnScaling& scaling, const MlpParameters& parameters) {
  for (const bool binary : {true, false}) {
    const MlpModel model({kShape.widths, binary}, scaling, parameters);
    const State state = decode(encode(model.state()), "model");
    if (!(mlp_model_from_state(state, "model")->state() == model.state())) __builtin_trap();
  }
  State message;
  add_scaling(scaling, &message);
  add_parameters(parameters, MlpPrecision::kFloats, &message);
  if (!(read_parameters(message, kShape) == parameters)) __builtin_trap();
  if (!(read_scaling(message, kColumns) == scaling)) __builtin_trap();
  State short_message;
  add_parameters(parameters, MlpPrecision::kSigns, &short_message);
  read_parameters(short_message, kShape);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::optional<State> message = fuzzed_state({data, size});
  if (!message) return 0;
  static const MlpParameters plain = initial_parameters(kShape, RandomStream({1, "fuzz"}));
  static const ColumnScaling none{{0, 0, 0}, {1, 1, 1}, 0};
  const auto parameters = accepted([&] { return read_parameters(*message, kShape); });
  const auto scaling = accepted([&] { return read_scaling(*message, kColumns); });
  if (parameters) use(none, *parameters);
  if (scaling) use(*scaling, plain);
  for (const RangeKind kind : {RangeKind::kExtremes, RangeKind::kQuantiles}) {
    const auto fitted = accepted([&] {
      ColumnRanges ranges(kind, kColumns);
      ranges.accept(0, *message);
      ranges.accept(1, *message);
      return ranges.scaling();
    });
    if (fitted) use(*fitted, plain);
  }
  return 0;
}
