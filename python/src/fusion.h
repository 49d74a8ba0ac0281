#pragma once

#include <memory>

#include "bitfed/federated/method.h"
#include "python/src/python_object.h"

namespace bitfed::python {

// A one-shot Tsetlin method whose clients are those of all such methods and whose fusion is the object's
// `fuse`.
std::unique_ptr<Method> make_python_fusion(const MethodContext& context, const PythonObject& method);

}  // namespace bitfed::python
