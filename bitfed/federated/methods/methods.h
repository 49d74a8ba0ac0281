#pragma once

#include <memory>

#include "bitfed/federated/method.h"

// One function a method, each in the file of its name.
namespace bitfed {

std::unique_ptr<Method> make_fed_bin_mlp(const MethodContext& context);
std::unique_ptr<Method> make_fedavg(const MethodContext& context);
std::unique_ptr<Method> make_fedbat(const MethodContext& context);
std::unique_ptr<Method> make_fedbnn(const MethodContext& context);
std::unique_ptr<Method> make_fedmud(const MethodContext& context);
std::unique_ptr<Method> make_fedtm(const MethodContext& context);
std::unique_ptr<Method> make_fedtm_bank(const MethodContext& context);
std::unique_ptr<Method> make_fedtm_largest(const MethodContext& context);
std::unique_ptr<Method> make_fedtmos(const MethodContext& context);
std::unique_ptr<Method> make_fedtmos_ensemble(const MethodContext& context);

}  // namespace bitfed
