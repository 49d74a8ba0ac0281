#pragma once

#include <memory>

#include "bitfed/federated/method.h"

// The functions of a method are in the file of its name. make_*_client is for devices, whose program does not
// contain servers' halves: it must not refer to them. The one-shot Tsetlin methods share a client half,
// tsetlin/tsetlin_server.h.
namespace bitfed {

std::unique_ptr<ClientHalf> make_fed_bin_mlp_client(const MethodContext& context);
std::unique_ptr<Method> make_fed_bin_mlp(const MethodContext& context);
std::unique_ptr<ClientHalf> make_fedavg_client(const MethodContext& context);
std::unique_ptr<Method> make_fedavg(const MethodContext& context);
// FedAvg of perceptrons, in fed_bin_mlp.cc.
std::unique_ptr<ClientHalf> make_perceptron_client(const MethodContext& context);
std::unique_ptr<Method> make_perceptrons(const MethodContext& context);
std::unique_ptr<ClientHalf> make_fedbat_client(const MethodContext& context);
std::unique_ptr<Method> make_fedbat(const MethodContext& context);
std::unique_ptr<ClientHalf> make_fedbnn_client(const MethodContext& context);
std::unique_ptr<Method> make_fedbnn(const MethodContext& context);
std::unique_ptr<ClientHalf> make_fedmud_client(const MethodContext& context);
std::unique_ptr<Method> make_fedmud(const MethodContext& context);
std::unique_ptr<ClientHalf> make_fedprox_client(const MethodContext& context);
std::unique_ptr<Method> make_fedprox(const MethodContext& context);
std::unique_ptr<ClientHalf> make_fedtm_client(const MethodContext& context);
std::unique_ptr<Method> make_fedtm(const MethodContext& context);
std::unique_ptr<Method> make_fedtm_bank(const MethodContext& context);
std::unique_ptr<Method> make_fedtm_largest(const MethodContext& context);
std::unique_ptr<Method> make_fedtmos(const MethodContext& context);
std::unique_ptr<Method> make_fedtmos_ensemble(const MethodContext& context);
std::unique_ptr<ClientHalf> make_scaffold_client(const MethodContext& context);
std::unique_ptr<Method> make_scaffold(const MethodContext& context);

}  // namespace bitfed
