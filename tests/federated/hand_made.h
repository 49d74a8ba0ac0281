#pragma once

// Uploads and servers made by hand, for the tests of the methods.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bitfed/base/config.h"
#include "bitfed/federated/method.h"
#include "bitfed/federated/tsetlin/tsetlin_client.h"
#include "bitfed/tsetlin/clause_codec.h"
#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed::hand_made {

// What one client says of one class. A clause is the list of its included literals; for an image of n
// pixels literal i < n is pixel i, literal n + i its negation.
struct Bank {
  uint16_t label = 0;
  uint32_t samples = 1;
  std::vector<int32_t> weights;
  std::vector<std::vector<size_t>> clauses;
  float positive_mean = 1;
  float negative_mean = 0;
  float hardest_excess = 0;  // by which the mean over the hardest class exceeds negative_mean
};

// A client's familiar clauses; those that are not given are empty, and say nothing.
struct Familiar {
  std::vector<int32_t> weights;
  std::vector<std::vector<size_t>> clauses;
  float mean = 0;
};

// Of an image of one row whose pixels are bits.
inline ClauseLayout flat_layout(size_t literals) {
  return clause_layout(
      {.height = 1, .width = literals / 2, .planes = 1, .patch_height = 1, .patch_width = literals / 2}, {});
}

inline void include(const std::vector<size_t>& literals, size_t row, BitMatrix* actions) {
  for (const size_t literal : literals) actions->set(row, literal, true);
}

// Familiar clauses of a specialist whose banks have so many clauses, as an upload carries them.
inline void add_familiar(const Familiar& familiar, size_t clauses, const ClauseLayout& layout,
                         const std::string& specialist, State* upload) {
  if (clauses < 4) return;
  WeightedClauses sent{BitMatrix(clauses / 4, layout.literals()), familiar.weights};
  sent.weights.resize(clauses / 4, 1);
  for (size_t i = 0; i < familiar.clauses.size(); ++i) include(familiar.clauses[i], i, &sent.actions);
  add_clauses(layout, sent, specialist + ".familiar", upload);
  upload->add(specialist + ".familiar_mean", {1}, std::vector<float>{familiar.mean});
}

// The upload of one client with one machine; every bank has as many clauses.
inline State upload_of(const std::vector<Bank>& banks, const ClauseLayout& layout,
                       const Familiar& familiar = {}) {
  std::vector<uint16_t> classes;
  std::vector<uint32_t> samples;
  std::vector<int32_t> weights;
  std::vector<float> calibration;
  const size_t clauses = banks.front().weights.size();
  BitMatrix actions(banks.size() * clauses, layout.literals());
  for (size_t i = 0; i < banks.size(); ++i) {
    classes.push_back(banks[i].label);
    samples.push_back(banks[i].samples);
    weights.insert(weights.end(), banks[i].weights.begin(), banks[i].weights.end());
    calibration.insert(calibration.end(), {banks[i].positive_mean, banks[i].negative_mean,
                                           banks[i].negative_mean + banks[i].hardest_excess});
    for (size_t clause = 0; clause < banks[i].clauses.size(); ++clause)
      include(banks[i].clauses[clause], i * clauses + clause, &actions);
  }
  State state;
  state.add("classes", {classes.size()}, classes);
  state.add("samples", {samples.size()}, samples);
  add_clauses(layout, {actions, weights}, "0.clauses", &state);
  state.add("0.calibration", {banks.size(), 3}, calibration);
  add_familiar(familiar, clauses, layout, "0", &state);
  return state;
}

// The same for a flat machine of `literals` literals.
inline State upload_of(const std::vector<Bank>& banks, size_t literals, const Familiar& familiar = {}) {
  return upload_of(banks, flat_layout(literals), familiar);
}

// Images of one row; a pixel of 255 is a one, of 0 a zero.
inline Dataset images(size_t width, size_t classes, const std::vector<std::vector<int>>& samples = {}) {
  Dataset dataset;
  dataset.name = "hand-made";
  dataset.height = 1;
  dataset.width = width;
  dataset.channels = 1;
  for (size_t label = 0; label < classes; ++label) dataset.class_names.push_back(std::to_string(label));
  for (const std::vector<int>& sample : samples) {
    for (const int bit : sample) dataset.pixels.push_back(bit != 0 ? 255 : 0);
    dataset.labels.push_back(0);
  }
  return dataset;
}

inline std::unique_ptr<Method> method_of(const std::string& recipe, const Dataset& prototype,
                                         uint64_t seed = 0, const Trainers* trainers = nullptr) {
  const Config config = Config::parse(recipe, "recipe.toml");
  return make_method({config, prototype, seed, trainers});
}

// The uploads of clients 0, 1, … through the server of a method, first to last: the model it makes of them.
inline std::unique_ptr<TsetlinModel> fuse(ServerHalf& server, const std::vector<State>& uploads) {
  for (uint32_t client = 0; client < uploads.size(); ++client) server.accept(client, uploads[client]);
  server.finish_round(1);
  const std::unique_ptr<Model> model = server.model();
  return std::make_unique<TsetlinModel>(dynamic_cast<const TsetlinModel&>(*model));
}

// The signed weights of one class of a member.
inline std::vector<int32_t> weights_of(const TsetlinMember& member, size_t label) {
  const auto first = member.weights.begin() + static_cast<std::ptrdiff_t>(label * member.clauses);
  return {first, first + static_cast<std::ptrdiff_t>(member.clauses)};
}

// The included literals of one clause of a member.
inline std::vector<size_t> literals_of(const TsetlinMember& member, size_t label, size_t clause) {
  std::vector<size_t> literals;
  for (size_t i = 0; i < member.shape.literals(); ++i) {
    if (member.actions.get(label * member.clauses + clause, i)) literals.push_back(i);
  }
  return literals;
}

// Whether a clause fires for an image of one row, by the definition. An empty one does not.
inline bool fires(const std::vector<size_t>& literals, const std::vector<int>& image) {
  for (const size_t literal : literals) {
    const bool bit = image[literal % image.size()] != 0;
    if (bit != (literal < image.size())) return false;
  }
  return !literals.empty();
}

// All images of `width` bits.
inline std::vector<std::vector<int>> all_images(size_t width) {
  std::vector<std::vector<int>> result;
  for (size_t number = 0; number < size_t{1} << width; ++number) {
    std::vector<int> image;
    for (size_t i = 0; i < width; ++i) image.push_back(static_cast<int>(number >> i & 1));
    result.push_back(image);
  }
  return result;
}

}  // namespace bitfed::hand_made
