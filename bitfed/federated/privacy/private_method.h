#pragma once

#include <memory>

#include "bitfed/federated/method.h"

namespace bitfed {

// The method with the recipe's [privacy]; the same method where there is none. An input_error for a method
// that needs each client's upload by itself.
std::unique_ptr<Method> with_privacy(const MethodContext& context, std::unique_ptr<Method> method);

}  // namespace bitfed
