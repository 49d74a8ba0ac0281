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

// The common part of the servers of the Tsetlin methods.

// How the sums of a composite's machines are made comparable. The FedTMOS paper adds the sums s_m(x) of the
// machines, each divided by its span over the input; it clamps to ±T only in training. The library used by
// the authors' code also clamps in prediction, and the code's input is the whole test set. The sums of
// well-trained machines exceed T, so that clamped sums tie.
enum class Normalise {
  kTraining,  // the sums, divided by their span over the clients' training samples
  kFixed,     // the sums, divided by T
  kBatch,     // as in the authors' code
};
Normalise read_normalise(const Config& method, const char* fallback);

// `threshold`: T of the member's machine; `banks`: its banks, one per class, with their mean sums.
void normalise_sums(Normalise how, int32_t threshold, std::span<const ClassBank> banks,
                    TsetlinMember* member);

// A member without clauses for one specialist: not clamped, scaled by T.
TsetlinMember empty_member(const TsetlinRecipe& recipe, size_t specialist, size_t clauses);

// A class without clauses in any member, such as one that no client holds, must never be predicted: its bias
// is set below what the sums of the others can reach; where these are clamped and can tie with it in every
// member, a member is added that breaks the tie. Returns false, and changes nothing, where no class has
// a clause that can fire: such a model is empty.
bool silence_absent(std::vector<TsetlinMember>* members);

// The classes that have a clause with literals, and a weight, in some member.
std::vector<bool> classes_with_clauses(const std::vector<TsetlinMember>& members);

// The model after a round of a method that goes on from it, with such classes silenced. An empty one, as it
// may be after a short first round, predicts the first of the classes that clients `held`.
std::unique_ptr<TsetlinModel> model_after_round(std::vector<TsetlinMember> members,
                                                const std::vector<bool>& held);

// Notes for the user: which classes have fewer than kFewSamples, of those that have any. `where` says whose
// samples these are.
std::vector<std::string> notes_on_few_samples(const std::vector<std::string>& class_names,
                                              const std::vector<uint64_t>& samples, const char* where);

// Which classes are never predicted, and why.
std::vector<std::string> notes_on_silence(const std::vector<std::string>& class_names,
                                          const std::vector<bool>& held,
                                          const std::vector<TsetlinMember>& members);

// A failure with a line that says why, where no class has a clause: such a model is no result.
void expect_clauses(const std::vector<TsetlinMember>& members);

// Copies a bank into the rows of one class; weights get the sign of their polarity.
void place_bank(const ClassBank& bank, size_t label, TsetlinMember* member);

// Reads server_models (phi, the size of the result in units of a client's machine): a number of at least
// `min`, or an array with one per specialist.
std::vector<double> read_budget(const Config& method, size_t specialists, double min);

// A one-shot method: collects all uploads, then fuses them.
using Uploads = std::map<uint32_t, TsetlinUpload>;  // by client
struct Fused {
  std::vector<TsetlinMember> members;
  std::vector<std::string> notes;
};
using Fuse = std::function<Fused(const TsetlinRecipe& recipe, const Uploads& uploads)>;
std::unique_ptr<ClientHalf> make_one_shot_client(const MethodContext& context);
std::unique_ptr<Method> make_one_shot_method(const MethodContext& context, Fuse fuse);

}  // namespace bitfed
