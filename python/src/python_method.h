#pragma once

#include <nanobind/nanobind.h>

#include "bitfed/federated/experiment.h"

namespace bitfed::python {

// A method that is a Python object (bitfed.Method or bitfed.Fusion), in the round loop of all methods.
MakeMethod python_method(nanobind::object method);

// What a client half in Python is given to report with.
void add_client_progress(nanobind::module_& module);

}  // namespace bitfed::python
