#include "bitfed/nn/mlp_model.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "bitfed/zoo/zoo.h"
#include "tests/fuzz/fuzzed_state.h"

namespace {

using namespace bitfed;

constexpr size_t kSamples = 3;

Dataset table_of(size_t columns) {
  Dataset table;
  table.name = "table";
  table.columns.assign(columns, "x");
  table.labels.assign(kSamples, 0);
  for (size_t i = 0; i < kSamples * columns; ++i)
    table.values.push_back(static_cast<float>(i % 7) * 1.5f - 4);
  return table;
}

Dataset images_of(const PatchShape& shape, size_t channels) {
  Dataset images;
  images.name = "images";
  images.height = shape.height;
  images.width = shape.width;
  images.channels = channels;
  images.labels.assign(kSamples, 0);
  for (size_t i = 0; i < kSamples * images.image_bytes(); ++i)
    images.pixels.push_back(static_cast<uint8_t>(i * 37));
  return images;
}

// Samples such as the model takes; none where they, or what is made of them, would be large.
Dataset samples_for(const Model& model) {
  constexpr size_t kMost = 1024;
  if (const auto* mlp = dynamic_cast<const MlpModel*>(&model)) return table_of(mlp->shape().widths.front());
  for (const TsetlinMember& member : dynamic_cast<const TsetlinModel&>(model).members()) {
    if (member.shape.patches() > kMost || member.shape.literals() > kMost) return {};
  }
  const TsetlinMember& first = dynamic_cast<const TsetlinModel&>(model).members().front();
  const BooleanizerSpec& spec = first.booleanizer;
  if (spec.kind == "quantile") return table_of(spec.cuts.size());
  const size_t planes = spec.kind == "colour-thermometer" ? static_cast<size_t>(spec.levels) : 1;
  return images_of(first.shape, first.shape.planes / planes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ThreadPool pool(1);
  const std::optional<State> state = fuzzed_state({data, size});
  if (!state) return 0;
  std::unique_ptr<Model> model;
  try {
    model = load_model(*state, "fuzz");
  } catch (const Error& error) {
    check_refusal(error);
    return 0;
  }
  // A model that was accepted is written as it is; an Error from here is a finding.
  model->costs();
  if (!(load_model(decode(encode(model->state()), "again"), "again")->state() == model->state()))
    __builtin_trap();
  const Dataset samples = samples_for(*model);
  if (samples.size() == 0) return 0;
  try {
    for (const uint16_t label : predict(*model, samples, pool)) {
      if (label >= model->class_count()) __builtin_trap();
    }
  } catch (const Error& error) {
    check_refusal(error);
  }
  return 0;
}
