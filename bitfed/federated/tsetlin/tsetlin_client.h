#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bitfed/bits/bit_matrix.h"
#include "bitfed/federated/method.h"
#include "bitfed/tsetlin/clause_codec.h"
#include "bitfed/zoo/tsetlin_zoo.h"

namespace bitfed {

// The client half that all Tsetlin methods share: train every specialist for some epochs, from the
// broadcast's model where there is one, and upload what the machines learned of the classes that this
// client has seen, its clauses reduced to the literals that matter. Because it is one half, the one-shot
// methods can be compared on the same uploads.

// What one specialist learned of one class.
struct ClassBank {
  BitMatrix actions;             // a row a clause
  std::vector<int32_t> weights;  // at least 1; even clauses vote for, odd ones against
  float positive_mean = 0;       // mean class sum, unclamped, over the client's samples of the class
  float negative_mean = 0;       // and over its other samples; 0 where it has none
  float hardest_mean = 0;        // and over those of the class that it tells apart worst
};

// A class that the client has never seen is taught by negatives alone: the clauses against it come to fire
// for whatever is like the client's samples. Some of these, none of them empty, the heaviest first; no
// clauses at all where the client has seen every class.
struct FamiliarClauses {
  WeightedClauses clauses;
  float mean = 0;  // of the weights that fire together, over the client's samples
};

// One client's upload, checked. banks[specialist][i] belongs to classes[i].
struct TsetlinUpload {
  std::vector<uint16_t> classes;  // ascending
  std::vector<uint32_t> samples;  // of each of these classes; at least 1
  std::vector<std::vector<ClassBank>> banks;
  std::vector<FamiliarClauses> familiar;  // of each specialist

  uint64_t total_samples() const;
};

struct TsetlinRecipe {
  std::vector<SpecialistSpec> specialists;
  Dataset prototype;  // no samples
  uint32_t epochs = 30;
  bool sends_familiar = false;  // uploads carry FamiliarClauses
  // How far a server trusts a client: a clause votes with this weight at most, and then no machine tells
  // classes apart by less than T, whatever it claims, so that nobody's votes are blown up; 0: it believes
  // all.
  int32_t most_votes = 0;
  uint32_t most_samples = UINT32_MAX;  // of a class
};

// Reads [model], [data], [client], and of [federation] most_votes and most_samples.
TsetlinRecipe read_tsetlin_recipe(const MethodContext& context);

std::unique_ptr<ClientHalf> make_tsetlin_client(const TsetlinRecipe& recipe);

// How far a client's n samples of a class are believed.
inline double trust_of(uint64_t samples) {
  return static_cast<double>(samples) / (static_cast<double>(samples) + 100);
}

// The keys of this half, without and with FamiliarClauses; see Method::client_key.
inline constexpr const char* kTsetlinClientKey = "tsetlin-3";
inline constexpr const char* kFamiliarClientKey = "tsetlin-3-familiar";

// Clauses of one polarity (0: the even ones, for the class) that are not empty, heaviest first, the lower one
// among equals.
std::vector<size_t> by_weight(const BitMatrix& actions, const std::vector<int32_t>& weights, size_t polarity);

// The tensor that holds a specialist's clauses, in uploads and broadcasts.
std::string clauses_name(size_t specialist);

// An upload of all classes as the FedTMOS paper counts it: per clause four bytes for the weight, and a bit
// for each literal in whole words of four bytes. To compare what is really sent with.
uint64_t raw_upload_bytes(const TsetlinRecipe& recipe);

// The upload in a client's message, or an input_error for anything that does not fit the recipe.
TsetlinUpload read_upload(const State& message, const TsetlinRecipe& recipe);

}  // namespace bitfed
