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

// The client half of all Tsetlin methods: trains every specialist for some epochs, starting from the
// broadcast's model if there is one, and uploads the reduced clauses of the classes that this client has
// seen. Because the one-shot methods share it, they can be compared on the same uploads.

// What one specialist learned about one class.
struct ClassBank {
  BitMatrix actions;             // a row per clause
  std::vector<int32_t> weights;  // at least 1; even clauses vote for, odd ones against
  float positive_mean = 0;       // mean class sum, unclamped, over the client's samples of the class
  float negative_mean = 0;       // and over its other samples; 0 where it has none
  float hardest_mean = 0;        // and over those of the class that is hardest to distinguish from this one
};

// A class that the client has never seen is trained on negatives only: the clauses against it learn to fire
// for samples similar to the client's own. These are some of them, not empty, the heaviest first; none where
// the client has seen every class.
struct FamiliarClauses {
  WeightedClauses clauses;
  float mean = 0;  // of the sum of the firing clauses' weights over the client's samples
};

// The classes that occur in a client's data, ascending, and their sample counts. The first two tensors of
// every upload.
struct ClassCounts {
  std::vector<uint16_t> classes;
  std::vector<uint32_t> samples;

  uint64_t total() const;
};
ClassCounts count_classes(const Dataset& samples);
void add_counts(const ClassCounts& counts, State* upload);

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
  // How far a server trusts a client: upper limit of a clause's weight. With a limit, the reported class
  // means are also kept at least T apart, so that no client's votes are scaled up. 0: no limit.
  int32_t max_votes = 0;
  uint32_t max_samples = UINT32_MAX;  // upper limit per class
};

// Reads [model], [data], [client], and of [federation] max_votes and max_samples.
TsetlinRecipe read_tsetlin_recipe(const MethodContext& context);

std::unique_ptr<ClientHalf> make_tsetlin_client(const TsetlinRecipe& recipe);

// Trains one specialist's machine for the recipe's epochs; an Error::Kind::kStopped where the context says
// so.
void train_machine(const TsetlinRecipe& recipe, size_t specialist, const BitImages& images,
                   const std::vector<uint16_t>& labels, const ClientContext& context,
                   TsetlinMachine* machine);

// The weight of a client with n samples of a class: n / (n + 100).
inline double trust_of(uint64_t samples) {
  return static_cast<double>(samples) / (static_cast<double>(samples) + 100);
}

// Fewer samples than this are too few to say anything about.
inline constexpr uint64_t kFewSamples = 30;

// The part of each client's samples that counts where a client must not outvote the others by the number that
// it claims: no more than ten times the median client's. 1 for each client of a federation of similar ones.
std::vector<double> parts_that_count(const std::vector<uint64_t>& totals);

// The keys of this half, without and with FamiliarClauses; see Method::client_key.
inline constexpr const char* kTsetlinClientKey = "tsetlin-3";
inline constexpr const char* kFamiliarClientKey = "tsetlin-3-familiar";

// Nonempty clauses of one polarity (0: even clauses, for the class), heaviest first; the lower index on ties.
std::vector<size_t> by_weight(const BitMatrix& actions, const std::vector<int32_t>& weights, size_t polarity);

// The tensor that holds a specialist's clauses, in uploads and broadcasts.
std::string clauses_name(size_t specialist);

// The size of an upload of all classes as counted in the FedTMOS paper: per clause four bytes for the weight,
// and a bit per literal in whole words of four bytes. For comparison with the bytes that are really sent.
uint64_t raw_upload_bytes(const TsetlinRecipe& recipe);

// The counts in a client's message, or an input_error; limited to the recipe's max_samples.
ClassCounts read_counts(const State& message, const TsetlinRecipe& recipe);

// The upload in a client's message, or an input_error for anything that does not fit the recipe.
TsetlinUpload read_upload(const State& message, const TsetlinRecipe& recipe);

}  // namespace bitfed
