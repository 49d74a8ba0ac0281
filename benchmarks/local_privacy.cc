// What local privacy would cost the one-shot Tsetlin methods: takes the uploads of a run, flips each action
// with a probability (randomised response), adds discrete Gaussian noise to each weight, and writes them as
// uploads that `bitfed run --reuse` fuses.
//
//   local_privacy RUN OUT FLIP SIGMA      FLIP from 0 to 0.5; SIGMA a whole number, 0: none
//
// Prints the epsilon that the randomised response of one client's actions costs: per action, and for all. The
// calibration means and class counts go out as they are; they would cost more.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/hash/digest.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/federated/privacy/discrete_gaussian.h"
#include "bitfed/federated/tsetlin/tsetlin_client.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

struct Noise {
  double flip = 0;
  uint64_t sigma = 0;
};

void flip_actions(double probability, RandomBits* bits, WeightedClauses* clauses) {
  const auto of = static_cast<uint64_t>(std::lround(probability * 0x1p32));
  for (size_t clause = 0; clause < clauses->weights.size(); ++clause) {
    for (size_t literal = 0; literal < clauses->actions.columns(); ++literal) {
      if (bits->with_probability(of, uint64_t{1} << 32))
        clauses->actions.set(clause, literal, !clauses->actions.get(clause, literal));
    }
  }
}

// Returns the number of actions.
uint64_t randomise(const TsetlinRecipe& recipe, const State& upload, const Noise& noise, uint32_t client,
                   State* out) {
  uint64_t actions = 0;
  const size_t held = upload.values<uint16_t>("classes", {State::kAny}).size();
  for (const Tensor& tensor : upload.tensors()) {
    size_t specialist = 0;
    while (specialist < recipe.specialists.size() && tensor.name != clauses_name(specialist)) ++specialist;
    if (specialist == recipe.specialists.size()) {
      out->add(tensor);
      continue;
    }
    const SpecialistSpec& spec = recipe.specialists[specialist];
    const ClauseLayout layout = clause_layout(spec.shape(recipe.prototype), spec.booleanizer);
    WeightedClauses clauses = read_clauses(layout, held * spec.options.clauses, tensor.name, upload);
    actions += clauses.weights.size() * clauses.actions.columns();
    RandomBits bits(seeded_random_words({1, "flips", specialist, client}));
    flip_actions(noise.flip, &bits, &clauses);
    if (noise.sigma > 0) {
      DiscreteGaussian gaussian(noise.sigma, seeded_random_words({1, "weights", specialist, client}));
      for (int32_t& weight : clauses.weights) {
        const int64_t noised = weight + gaussian.draw();
        weight = static_cast<int32_t>(std::clamp<int64_t>(noised, 1, kMaximumWeight));
      }
    }
    reduce_clauses(layout, &clauses.actions);
    add_clauses(layout, clauses, tensor.name, out);
  }
  return actions;
}

void run(const fs::path& folder, const fs::path& out, const Noise& noise) {
  const Experiment experiment =
      load_experiment(Config::load(folder / "recipe.toml"), "", "run", ClientsAre::kSimulated);
  const Config recipe = Config::load(folder / "recipe.toml");
  const Dataset prototype = subset(experiment.train, {});
  const TsetlinRecipe tsetlin = read_tsetlin_recipe({.recipe = recipe, .prototype = prototype});
  const fs::path round = fs::path("checkpoint") / "round-00001";
  create_folders(out / round);
  uint64_t most = 0;
  for (uint32_t client = 0; client < experiment.clients; ++client) {
    const std::string name = fmt::format("client-{:05}", client);
    const State upload = read_state(folder / round / (name + ".safetensors"));
    State changed;
    changed.metadata = upload.metadata;
    most = std::max(most, randomise(tsetlin, upload, noise, client, &changed));
    const Bytes bytes = encode(changed);
    write_file_atomically(out / round / (name + ".safetensors"), bytes);
    auto note = nlohmann::ordered_json::parse(read_text_file(folder / round / (name + ".json")));
    note["sha256"] = sha256_hex(bytes);
    write_file_atomically(out / round / (name + ".json"), note.dump(1) + "\n");
  }
  const double each = noise.flip > 0 ? std::log((1 - noise.flip) / noise.flip) : INFINITY;
  fmt::print("epsilon {:.3f} per action, {:.0f} for the {} actions of a client\n", each,
             each * static_cast<double>(most), most);
}

}  // namespace
}  // namespace bitfed

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "local_privacy RUN OUT FLIP SIGMA\n");
    return 2;
  }
  try {
    bitfed::run(argv[1], argv[2], {std::strtod(argv[3], nullptr), std::strtoull(argv[4], nullptr, 10)});
  } catch (const std::exception& error) {
    fmt::print(stderr, "local_privacy: {}\n", error.what());
    return 1;
  }
  return 0;
}
