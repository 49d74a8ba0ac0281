#include "bitfed/federated/expect_tensors.h"

#include "bitfed/base/error.h"

namespace bitfed {

void expect_tensors(const State& message, size_t count) {
  if (message.tensors().size() == count) return;
  throw input_error("{}: found {} tensors, expected {}: some do not belong in it", message.source(),
                    message.tensors().size(), count);
}

}  // namespace bitfed
