// The plain baseline of the one-shot methods: a class is decided by the clients with the most samples of it,
// as many as the server's model has machines (server_models, rounded down), with all their clauses and
// without clamping. Where a class has fewer holders, they vote more than once, so that all classes have as
// many votes.

#include <algorithm>

#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/tsetlin/tsetlin_server.h"

namespace bitfed {
namespace {

struct Holder {
  uint32_t samples;
  const ClassBank* bank;
};

// By descending number of samples; the lower client on ties.
std::vector<Holder> holders_of(const Uploads& uploads, size_t specialist, uint16_t label) {
  std::vector<Holder> holders;
  for (const auto& [client, upload] : uploads) {
    const auto found = std::lower_bound(upload.classes.begin(), upload.classes.end(), label);
    if (found == upload.classes.end() || *found != label) continue;
    const auto i = static_cast<size_t>(found - upload.classes.begin());
    holders.push_back({upload.samples[i], &upload.banks[specialist][i]});
  }
  std::stable_sort(holders.begin(), holders.end(),
                   [](const Holder& a, const Holder& b) { return a.samples > b.samples; });
  return holders;
}

Fused fuse(const std::vector<double>& budget, const TsetlinRecipe& recipe, const Uploads& uploads) {
  Fused fused;
  for (size_t s = 0; s < recipe.specialists.size(); ++s) {
    const auto machines = static_cast<size_t>(budget[s]);
    std::vector<TsetlinMember> members(machines,
                                       empty_member(recipe, s, recipe.specialists[s].options.clauses));
    for (size_t label = 0; label < recipe.prototype.class_count(); ++label) {
      const std::vector<Holder> holders = holders_of(uploads, s, static_cast<uint16_t>(label));
      for (size_t i = 0; i < machines && !holders.empty(); ++i)
        place_bank(*holders[i % holders.size()].bank, label, &members[i]);
    }
    for (TsetlinMember& member : members) fused.members.push_back(std::move(member));
  }
  return fused;
}

}  // namespace

std::unique_ptr<Method> make_fedtm_largest(const MethodContext& context) {
  const size_t specialists = read_specialists(context.recipe, context.prototype).size();
  const std::vector<double> budget = read_budget(context.recipe.section("method"), specialists, 1);
  return make_one_shot_method(context, [budget](const TsetlinRecipe& recipe, const Uploads& uploads) {
    return fuse(budget, recipe, uploads);
  });
}

}  // namespace bitfed
