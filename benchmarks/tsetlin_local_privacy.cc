// What local privacy does to the uploads of a one-shot Tsetlin method: randomised response flips each action
// with probability P, and discrete Gaussian noise of S times the mean weight is added to each weight. Reads a
// finished run and writes a copy of it, whose uploads `bitfed run --reuse` fuses.
//   tsetlin_local_privacy RUN COPY P S [DATA_DIR]

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bitfed/base/hash/digest.h"
#include "bitfed/federated/experiment.h"
#include "bitfed/federated/privacy/discrete_gaussian.h"
#include "bitfed/federated/tsetlin/tsetlin_client.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

struct Perturbation {
  double flip = 0;
  double weight = 0;
};

void perturb(const Perturbation& how, RandomStream random, WeightedClauses* clauses) {
  for (size_t row = 0; row < clauses->actions.rows(); ++row) {
    for (size_t literal = 0; literal < clauses->actions.columns(); ++literal) {
      if (random.uniform() < how.flip)
        clauses->actions.row(row)[literal / 64] ^= uint64_t{1} << (literal % 64);
    }
  }
  double mean = 0;
  for (const int32_t weight : clauses->weights) mean += weight;
  mean /= static_cast<double>(clauses->weights.size());
  const auto sigma = static_cast<uint64_t>(std::llround(how.weight * mean));
  if (sigma == 0) return;
  DiscreteGaussian noise(sigma, [random]() mutable { return random.next_u64(); });
  for (int32_t& weight : clauses->weights)
    weight = static_cast<int32_t>(std::clamp<int64_t>(weight + noise.draw(), 1, kMaximumWeight));
}

void perturb_run(const fs::path& run, const fs::path& copy, const Perturbation& how, const char* data_dir) {
  const Config recipe = Config::load(run / "recipe.toml");
  const Experiment experiment = load_experiment(recipe, data_dir, "copy", ClientsAre::kSimulated);
  const Dataset prototype = subset(experiment.train, {});
  const TsetlinRecipe tsetlin = read_tsetlin_recipe({.recipe = recipe, .prototype = prototype});
  fs::copy(run, copy, fs::copy_options::recursive);
  for (const auto& file : fs::directory_iterator(copy / "checkpoint" / "round-00001")) {
    if (file.path().extension() != ".json") continue;
    auto note = nlohmann::ordered_json::parse(read_text_file(file.path()));
    fs::path upload_file = file.path();
    upload_file.replace_extension(".safetensors");
    const State upload = decode(read_file(upload_file), upload_file.string());
    const size_t classes = upload.values<uint16_t>("classes", {State::kAny}).size();
    State changed;
    for (const Tensor& tensor : upload.tensors()) {
      const bool familiar = tensor.name.ends_with(".familiar");
      if (!familiar && !tensor.name.ends_with(".clauses")) {
        changed.add(tensor);
        continue;
      }
      const SpecialistSpec& specialist = tsetlin.specialists.at(std::stoul(tensor.name));
      const size_t each = specialist.options.clauses;
      const ClauseLayout layout = clause_layout(specialist.shape(prototype), specialist.booleanizer);
      WeightedClauses clauses =
          read_clauses(layout, familiar ? each / 4 : classes * each, tensor.name, upload);
      perturb(how, RandomStream({experiment.seed, tensor.name, note["client"].get<uint64_t>()}), &clauses);
      add_clauses(layout, clauses, tensor.name, &changed);
    }
    const Bytes bytes = encode(changed);
    note["sha256"] = sha256_hex(bytes);
    write_file_atomically(upload_file, bytes);
    write_file_atomically(file.path(), note.dump(1) + "\n");
  }
}

}  // namespace
}  // namespace bitfed

int main(int argc, char** argv) {
  if (argc < 5) {
    fmt::print(stderr, "tsetlin_local_privacy RUN COPY P S [DATA_DIR]\n");
    return 2;
  }
  bitfed::perturb_run(argv[1], argv[2], {std::atof(argv[3]), std::atof(argv[4])}, argc > 5 ? argv[5] : "");
}
