// What a program of somebody else does with the library: a federation on arrays in memory, its model from its
// file, and predictions.

#include <bitfed/base/error.h>
#include <bitfed/data/dataset.h>
#include <bitfed/federated/experiment.h>
#include <bitfed/simulation/experiment.h>
#include <bitfed/zoo/model_file.h>

#include <cstdio>

namespace {

// Images of 8 x 8 pixels: the class is the half that is bright.
bitfed::Dataset images(size_t count, uint64_t seed) {
  bitfed::RandomStream random({.seed = seed, .purpose = "foreign"});
  bitfed::Dataset data;
  data.name = "halves";
  data.height = data.width = 8;
  data.channels = 1;
  data.class_names = {"left", "right"};
  for (size_t i = 0; i < count; ++i) {
    const auto label = static_cast<uint16_t>(random.below(2));
    data.labels.push_back(label);
    for (size_t pixel = 0; pixel < 64; ++pixel)
      data.pixels.push_back((pixel % 8 < 4) == (label == 0) ? 200 : static_cast<uint8_t>(random.below(60)));
  }
  return data;
}

constexpr const char* kRecipe = R"(
name = "foreign"
[data]
partition = { kind = "iid", clients = 3 }
[model]
name = "tm"
clauses = 20
[method]
name = "fedtmos-ensemble"
[client]
epochs = 10
)";

}  // namespace

int main(int /*count*/, char** arguments) {
  try {
    const bitfed::Config recipe = bitfed::Config::parse(kRecipe, "recipe");
    bitfed::DataSplit split;
    split.train = images(90, 1);
    split.test = images(50, 2);
    const bitfed::Experiment experiment =
        bitfed::read_experiment(recipe, std::move(split), "foreign", bitfed::ClientsAre::kSimulated);
    bitfed::ExperimentOptions options;
    options.out = arguments[1];
    size_t clients = 0;
    const bitfed::ExperimentResult result =
        bitfed::run_experiment(experiment, options, [&](const bitfed::Event& event) {
          if (std::holds_alternative<bitfed::ClientFinished>(event)) ++clients;
        });
    const bitfed::ModelFile file = bitfed::read_model_file((result.folder / "model.safetensors").string());
    bitfed::ThreadPool pool(1);
    const bitfed::Dataset more = images(20, 3);
    const std::vector<float> scores = file.model->scores(more, pool);
    size_t right = 0;
    for (size_t i = 0; i < more.size(); ++i)
      right += (scores[2 * i] >= scores[2 * i + 1]) == (more.labels[i] == 0);
    std::printf("%zu clients, %zu of %zu right, model %s\n", clients, right, more.size(),
                file.sha256.c_str());
    return clients == 3 && right >= 18 && file.sha256 == result.summary.model_sha256 ? 0 : 1;
  } catch (const bitfed::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
