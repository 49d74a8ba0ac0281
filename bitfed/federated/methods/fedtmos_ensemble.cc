// FedTMOS (ensemble), section 4.1 of the FedTMOS paper: the composite of all clients' machines. A machine has
// the sum 0 for classes that its client has never seen.

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/tsetlin/tsetlin_server.h"

namespace bitfed {
namespace {

Fused fuse(Normalise normalise, const TsetlinRecipe& recipe, const Uploads& uploads) {
  Fused fused;
  for (const auto& [client, upload] : uploads) {
    for (size_t s = 0; s < recipe.specialists.size(); ++s) {
      TsetlinMember member = empty_member(recipe, s, recipe.specialists[s].options.clauses);
      for (size_t i = 0; i < upload.classes.size(); ++i) {
        place_bank(upload.banks[s][i], upload.classes[i], &member);
      }
      normalise_sums(normalise, recipe.specialists[s].options.threshold, upload.banks[s], &member);
      fused.members.push_back(std::move(member));
    }
  }
  return fused;
}

}  // namespace

std::unique_ptr<Method> make_fedtmos_ensemble(const MethodContext& context) {
  const Normalise normalise = read_normalise(context.recipe.section("method"), "fixed");
  return make_one_shot_method(context, [normalise](const TsetlinRecipe& recipe, const Uploads& uploads) {
    return fuse(normalise, recipe, uploads);
  });
}

}  // namespace bitfed
