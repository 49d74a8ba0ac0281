#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bitfed/federated/method.h"
#include "bitfed/federated/methods/tsetlin_client.h"
#include "bitfed/tsetlin/tsetlin_model.h"

namespace bitfed {

// What the servers of the Tsetlin methods have in common.

// A member without clauses for one specialist: clamped to ±T, scaled by T.
TsetlinMember empty_member(const TsetlinRecipe& recipe, size_t specialist, size_t clauses);

// Copies a bank into the rows of one class: its clauses with their polarity's sign.
void place_bank(const ClassBank& bank, size_t label, TsetlinMember* member);

// Reads server_models (phi, the size of the result in machines): a number, or one for each specialist.
std::vector<int64_t> read_budget(const Config& method, size_t specialists);

// A method of one round: it collects the uploads, then fuses them all at once.
using Uploads = std::map<uint32_t, TsetlinUpload>;  // by client
struct Fused {
  std::vector<TsetlinMember> members;
  std::vector<std::string> notes;
};
using Fuse = std::function<Fused(const TsetlinRecipe& recipe, const Uploads& uploads)>;
std::unique_ptr<Method> make_one_shot_method(const MethodContext& context, Fuse fuse);

}  // namespace bitfed
