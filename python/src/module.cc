#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bitfed/base/error.h"
#include "bitfed/bits/kernels.h"
#include "python/src/bindings.h"

int bitfed_main(int argc, char** argv);  // the program's, cli/main.cc

namespace nb = nanobind;

namespace bitfed::python {
namespace {

int run_program(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const nb::gil_scoped_release release;
  return bitfed_main(static_cast<int>(arguments.size()), pointers.data());
}

}  // namespace

void add_errors(nb::module_& module) {
  static PyObject* input = PyErr_NewExceptionWithDoc(
      "bitfed.InputError", "A file, recipe, array or argument is not what it should be.", PyExc_ValueError,
      nullptr);
  static PyObject* failed =
      PyErr_NewExceptionWithDoc("bitfed.Failure", "The work itself failed.", PyExc_RuntimeError, nullptr);
  module.attr("InputError") = nb::handle(input);
  module.attr("Failure") = nb::handle(failed);
  nb::register_exception_translator([](const std::exception_ptr& pointer, void* /*payload*/) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Error& error) {
      const Error::Kind kind = error.kind();
      PyErr_SetString(kind == Error::Kind::kInput     ? input
                      : kind == Error::Kind::kFailure ? failed
                                                      : PyExc_KeyboardInterrupt,
                      error.what());
    }
  });
}

}  // namespace bitfed::python

NB_MODULE(_core, module) {
  using namespace bitfed::python;
  module.doc() = "The C++ library of bitfed; use the package bitfed.";
  module.attr("__version__") = BITFED_VERSION;
  add_errors(module);
  add_models(module);
  add_tsetlin_trainer(module);
  add_mlp_trainer(module);
  add_data(module);
  add_experiments(module);
  module.def("main", run_program, nb::arg("arguments"), "The command line program; returns its exit status.");
  module.def(
      "instruction_set", [] { return std::string(bitfed::kernels().name); }, "The instruction set in use.");
}
