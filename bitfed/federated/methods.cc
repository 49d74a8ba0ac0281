#include <array>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/federated/method.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/privacy/private_method.h"
#include "bitfed/federated/privacy/private_sum.h"
#include "bitfed/federated/privacy/summed_client.h"
#include "bitfed/federated/tsetlin/tsetlin_server.h"

namespace bitfed {
namespace {

constexpr MethodEntry kMethods[] = {
    {"fedtm-bank",
     "one shot: every holder's strongest clauses, calibrated and folded into one machine (ours)",
     make_one_shot_client, make_fedtm_bank},
    {"fedtmos", "one shot: class weights clustered and regrouped into a few machines (FedTMOS, ICLR 2025)",
     make_one_shot_client, make_fedtmos},
    {"fedtmos-ensemble", "one shot: all clients' machines vote, as a composite (FedTMOS's own baseline)",
     make_one_shot_client, make_fedtmos_ensemble},
    {"fedtm-largest", "one shot: each class by the clients with the most samples of it (baseline)",
     make_one_shot_client, make_fedtm_largest},
    {"fedtm", "iterative: one Tsetlin machine, the mean of clients' automata (FedTM, ISTM 2023, and ours)",
     make_fedtm_client, make_fedtm},
    {"fed-bin-mlp",
     "iterative: mean of binarised perceptrons, and a personal one for every client (Fed-Bin-MLP, 2022)",
     make_fed_bin_mlp_client, make_fed_bin_mlp},
    {"fedbnn", "iterative: mean of binary networks with rotated weights (FedBNN)", make_fedbnn_client,
     make_fedbnn},
    {"fedbat",
     "iterative: real-valued networks whose updates are sent as one bit per weight (FedBAT, ICML 2024)",
     make_fedbat_client, make_fedbat},
    {"fedmud", "iterative: real-valued networks whose updates are sent as small factors (FedMUD, ICML 2025)",
     make_fedmud_client, make_fedmud},
    {"fedavg", "iterative: mean of real-valued networks, or of perceptrons for tables (FedAvg, AISTATS 2017)",
     make_fedavg_client, make_fedavg},
    {"fedprox", "iterative: FedAvg whose clients stay near the server's model (FedProx, MLSys 2020)",
     make_fedprox_client, make_fedprox},
    {"scaffold", "iterative: FedAvg with clients' drift corrected by control variates (SCAFFOLD, ICML 2020)",
     make_scaffold_client, make_scaffold},
};

// The list without servers' halves, made by the compiler: a program that uses only this one does not contain
// what only the other refers to.
struct ClientEntry {
  std::string_view name;
  std::unique_ptr<ClientHalf> (*make)(const MethodContext&);
};
constexpr auto kClients = [] {
  std::array<ClientEntry, std::size(kMethods)> clients{};
  for (size_t i = 0; i < clients.size(); ++i) clients[i] = {kMethods[i].name, kMethods[i].make_client};
  return clients;
}();

// What the entry that [method] names makes.
template <typename Entries>
auto make_named(const Entries& entries, const MethodContext& context) {
  const Config section = context.recipe.section("method");
  const std::string name = section.text("name", std::string(std::begin(entries)->name));
  std::vector<std::string> names;
  for (const auto& entry : entries) {
    if (entry.name == name) return entry.make(context);
    names.emplace_back(entry.name);
  }
  throw input_error("{}: no method is called '{}'{}", section.where("name"), name, suggestion(name, names));
}

}  // namespace

std::vector<CohortUpload> ClientHalf::train_cohort(const State& broadcast,
                                                   std::span<const CohortClient> clients,
                                                   ThreadPool* /*pool*/) const {
  std::vector<CohortUpload> uploads(clients.size());
  for (size_t i = 0; i < clients.size(); ++i) {
    try {
      uploads[i].upload = train(broadcast, clients[i].samples, clients[i].context);
    } catch (...) {
      uploads[i].error = std::current_exception();
    }
  }
  return uploads;
}

ClientUpdate ClientHalf::update_of(const State& /*broadcast*/, const State& /*upload*/) const {
  throw input_error("found an update that is to be summed, expected a method that averages");
}

void ServerHalf::accept_mean(const UpdateMean& /*mean*/) {
  throw input_error("found a mean of updates, expected a method that averages");
}

const std::vector<MethodEntry>& methods() {
  static const std::vector<MethodEntry> kList(std::begin(kMethods), std::end(kMethods));
  return kList;
}

std::unique_ptr<Method> make_method(const MethodContext& context) {
  return with_privacy(context, make_named(kMethods, context));
}

std::unique_ptr<ClientHalf> make_client_half(const MethodContext& context, NoiseSource noise) {
  PrivacyRecipe privacy = read_privacy(context.recipe, context.clients);
  std::unique_ptr<ClientHalf> half = make_named(kClients, context);
  if (!privacy.grid) return half;
  std::optional<DifferentialPrivacy> differential;
  if (has_differential_privacy(context.recipe)) {
    differential = read_differential_privacy(context.recipe, context.sampling);
    privacy.grid = PrivateSum::with_room(*privacy.grid, *differential);
  }
  return make_summed_client(privacy, differential, std::move(half), std::move(noise));
}

}  // namespace bitfed
