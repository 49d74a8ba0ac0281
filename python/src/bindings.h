#pragma once

#include <nanobind/nanobind.h>

namespace bitfed::python {

// One file per subject; each adds its classes and functions to the module.
void add_errors(nanobind::module_& module);
void add_models(nanobind::module_& module);
void add_tsetlin_trainer(nanobind::module_& module);
void add_mlp_trainer(nanobind::module_& module);
void add_data(nanobind::module_& module);
void add_experiments(nanobind::module_& module);

}  // namespace bitfed::python
