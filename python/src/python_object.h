#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace bitfed::python {

// A Python object that threads without the GIL may copy and drop.
using PythonObject = std::shared_ptr<nanobind::object>;

inline PythonObject share(nanobind::object object) {
  return {new nanobind::object(std::move(object)), [](nanobind::object* pointer) {
            const nanobind::gil_scoped_acquire gil;
            delete pointer;
          }};
}

}  // namespace bitfed::python
