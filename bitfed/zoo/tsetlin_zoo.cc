#include "bitfed/zoo/tsetlin_zoo.h"

#include <algorithm>

#include "bitfed/base/error.h"

namespace bitfed {
namespace {

constexpr int64_t kMaximumClauses = 1 << 16;

SpecialistSpec read_specialist(const Config& model, const Config& booleanize, const Dataset& prototype,
                               bool convolves) {
  SpecialistSpec spec;
  spec.booleanizer = read_booleanizer(booleanize, prototype.is_table() ? "quantile" : "threshold");
  MachineOptions& options = spec.options;
  options.clauses = static_cast<size_t>(model.integer("clauses", 100, 2, kMaximumClauses));
  if (options.clauses % 2 != 0) {
    throw input_error("{}: found {}, expected an even number: half the clauses vote for, half against",
                      model.where("clauses"), options.clauses);
  }
  options.threshold = static_cast<int32_t>(model.integer("threshold", convolves ? 1000 : 50, 1, 1 << 24));
  options.sensitivity = model.number("sensitivity", convolves ? 5 : 10, 1, 1e6);
  const std::vector<std::string> schemes = {"one-vs-all", "one-vs-one-random"};
  options.scheme = model.choice("update", schemes[0], schemes) == schemes[0] ? UpdateScheme::kOneVsAll
                                                                             : UpdateScheme::kOneVsOneRandom;
  options.weighted = model.flag("weighted", true);
  options.boost = model.flag("boost", true);
  if (model.has("max_literals"))
    options.max_literals = static_cast<size_t>(model.integer("max_literals", 0, 0, UINT16_MAX));
  if (convolves) {
    spec.patch = model.integers("patch", {10, 10}, 1, 4096);
    if (spec.patch.size() != 2) {
      throw input_error("{}: found {} numbers, expected height and width", model.where("patch"),
                        spec.patch.size());
    }
    if (prototype.is_table())
      throw input_error("{}: a table has no patches, use name = \"tm\"", model.where("name"));
    if (spec.patch[0] > static_cast<int64_t>(prototype.height) ||
        spec.patch[1] > static_cast<int64_t>(prototype.width)) {
      throw input_error("{}: found {} x {}, expected at most the image's {} x {}", model.where("patch"),
                        spec.patch[0], spec.patch[1], prototype.height, prototype.width);
    }
  }
  return spec;
}

}  // namespace

PatchShape SpecialistSpec::shape(const Dataset& dataset) const {
  PatchShape shape;
  shape.height = dataset.is_table() ? 1 : dataset.height;
  shape.width = dataset.is_table() ? 1 : dataset.width;
  shape.planes = plane_count(booleanizer, dataset);
  shape.patch_height = patch.empty() ? shape.height : static_cast<size_t>(patch[0]);
  shape.patch_width = patch.empty() ? shape.width : static_cast<size_t>(patch[1]);
  if (shape.patch_height > shape.height || shape.patch_width > shape.width) {
    throw input_error("a patch of {} x {} does not fit images of {} x {}", shape.patch_height,
                      shape.patch_width, shape.height, shape.width);
  }
  if (shape.literals() > UINT16_MAX) {
    throw input_error("a patch of {} literals, expected at most {}", shape.literals(), UINT16_MAX);
  }
  // A machine numbers the entries of its clauses' lists in 32 bits; there are at most twice as many as
  // automata.
  const size_t automata = options.clauses * dataset.class_count() * shape.literals();
  if (automata > INT32_MAX) {
    throw input_error("{} clauses of {} literals for each of {} classes: {} automata, expected at most {}",
                      options.clauses, shape.literals(), dataset.class_count(), automata, INT32_MAX);
  }
  return shape;
}

std::vector<SpecialistSpec> read_specialists(const Config& recipe, const Dataset& prototype) {
  const Config model = recipe.section("model");
  const std::vector<std::string> names = {"tm", "ctm", "ctm-composite"};
  const std::string name = model.choice("name", "ctm", names);
  if (name != "ctm-composite") {
    return {read_specialist(model, recipe.section("data").section("booleanize"), prototype, name == "ctm")};
  }
  std::vector<SpecialistSpec> specialists;
  for (const Config& member : model.sections("member")) {
    specialists.push_back(read_specialist(member, member.section("booleanize"), prototype, true));
  }
  if (specialists.empty()) {
    throw input_error("{}: none given, expected one [[model.member]] table for each machine",
                      model.where("member"));
  }
  return specialists;
}

}  // namespace bitfed
