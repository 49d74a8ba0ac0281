#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bitfed/federated/method.h"
#include "bitfed/federated/tsetlin/tsetlin_client.h"
#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {

// What the servers of the Tsetlin methods have in common.

// How a composite's sums are made comparable. The FedTMOS paper adds up s_m(x), the sums themselves, each
// machine's divided by their span over the input; it clamps to ±T for training alone. The library under the
// authors' code clamps when it predicts too, and the code's input is the whole test set. The sums of machines
// that have learned their classes exceed T, and clamped they tie.
enum class Normalise {
  kTraining,  // the sums, divided by their span over the clients' training samples
  kFixed,     // the sums, divided by T
  kBatch,     // as the authors' code does
};
Normalise read_normalise(const Config& method, const char* fallback);

// `banks`: what the member holds, a bank a class, with its mean sums.
void normalise_sums(Normalise how, std::span<const ClassBank> banks, TsetlinMember* member);

// A member without clauses for one specialist: clamped to ±T, scaled by T.
TsetlinMember empty_member(const TsetlinRecipe& recipe, size_t specialist, size_t clauses);

// Copies a bank into the rows of one class: its clauses with their polarity's sign.
void place_bank(const ClassBank& bank, size_t label, TsetlinMember* member);

// Reads server_models (phi, the size of the result in machines of the clients' size): a number from `least`
// on, or one for each specialist.
std::vector<double> read_budget(const Config& method, size_t specialists, double least);

// A method of one round: it collects the uploads, then fuses them all at once.
using Uploads = std::map<uint32_t, TsetlinUpload>;  // by client
struct Fused {
  std::vector<TsetlinMember> members;
  std::vector<std::string> notes;
};
using Fuse = std::function<Fused(const TsetlinRecipe& recipe, const Uploads& uploads)>;
std::unique_ptr<Method> make_one_shot_method(const MethodContext& context, Fuse fuse);

}  // namespace bitfed
