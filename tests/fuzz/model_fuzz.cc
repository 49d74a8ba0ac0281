#include "bitfed/edge/c/export_c.h"
#include "bitfed/tsetlin/tsetlin_model.h"
#include "bitfed/zoo/model_file.h"
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

Dataset images_of(const SampleShape& input) {
  Dataset images;
  images.name = "images";
  images.height = input.height;
  images.width = input.width;
  images.channels = input.channels;
  images.labels.assign(kSamples, 0);
  for (size_t i = 0; i < kSamples * images.image_bytes(); ++i)
    images.pixels.push_back(static_cast<uint8_t>(i * 37));
  return images;
}

// Samples such as the model takes; none where they, or what is made of them, would be large.
Dataset samples_for(const Model& model) {
  constexpr size_t kMost = 1024;
  if (const auto* tsetlin = dynamic_cast<const TsetlinModel*>(&model)) {
    for (const TsetlinMember& member : tsetlin->members()) {
      if (member.shape.patches() > kMost || member.shape.literals() > kMost) return {};
    }
  }
  const SampleShape input = input_of_model(model);
  return input.is_table() ? table_of(input.columns) : images_of(input);
}

// What predicts can be written as C, or is refused for a reason.
void export_as_c(const Model& model) {
  try {
    export_c(model, "model", std::vector<std::string>(model.class_count()));
  } catch (const Error& error) {
    check_refusal(error);
  }
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
  export_as_c(*model);
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
