#include <algorithm>
#include <cassert>

#include "bitfed/base/error.h"
#include "bitfed/base/names.h"
#include "bitfed/federated/method.h"
#include "bitfed/federated/methods/methods.h"
#include "bitfed/federated/privacy/private_method.h"

namespace bitfed {

std::vector<CohortUpload> ClientHalf::train_cohort(const State& broadcast,
                                                   std::span<const CohortClient> clients) const {
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
  assert(!"the method takes no means");
  return {};
}

void ServerHalf::accept_mean(const UpdateMean& /*mean*/) {
  assert(!"the method takes no means");
}

const std::vector<MethodEntry>& methods() {
  static const std::vector<MethodEntry> kMethods = {
      {"fedtm-bank",
       "one shot: every holder's strongest clauses, calibrated and folded into one machine (ours)",
       make_fedtm_bank},
      {"fedtmos", "one shot: class weights clustered and regrouped into a few machines (FedTMOS, ICLR 2025)",
       make_fedtmos},
      {"fedtmos-ensemble", "one shot: all clients' machines vote, as a composite (FedTMOS's own baseline)",
       make_fedtmos_ensemble},
      {"fedtm-largest", "one shot: each class by the clients with the most samples of it (baseline)",
       make_fedtm_largest},
      {"fedtm", "iterative: one Tsetlin machine, the mean of clients' automata (FedTM, ISTM 2023, and ours)",
       make_fedtm},
      {"fed-bin-mlp",
       "iterative: mean of binarised perceptrons, and a personal one for every client (Fed-Bin-MLP, 2022)",
       make_fed_bin_mlp},
      {"fedbnn", "iterative: mean of binary networks with rotated weights (FedBNN)", make_fedbnn},
      {"fedbat",
       "iterative: real-valued networks whose updates are sent as one bit per weight (FedBAT, ICML 2024)",
       make_fedbat},
      {"fedmud",
       "iterative: real-valued networks whose updates are sent as small factors (FedMUD, ICML 2025)",
       make_fedmud},
      {"fedavg", "iterative: mean of real-valued convolutional networks (FedAvg, AISTATS 2017)", make_fedavg},
  };
  return kMethods;
}

std::unique_ptr<Method> make_method(const MethodContext& context) {
  const Config section = context.recipe.section("method");
  const std::string name = section.text("name", methods().front().name);
  std::vector<std::string> names;
  for (const MethodEntry& entry : methods()) {
    if (entry.name == name) return with_privacy(context, entry.make(context));
    names.push_back(entry.name);
  }
  throw input_error("{}: no method is called '{}'{}", section.where("name"), name, suggestion(name, names));
}

}  // namespace bitfed
