# The Python package `bitfed`, where a Python with headers and nanobind is found. In a build folder it lies in python/bitfed,
# ready for PYTHONPATH; `cmake --install --component python` gives what a wheel contains.

if(NOT CMAKE_CROSSCOMPILING)
  find_package(Python 3.11 COMPONENTS Interpreter Development.Module QUIET)
endif()
set(python_found OFF)
if(Python_Interpreter_FOUND AND Python_Development.Module_FOUND)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
    OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_package(nanobind CONFIG QUIET)
  set(python_found ${nanobind_FOUND})
endif()
option(BITFED_PYTHON "Build the Python package (needs Python's headers and nanobind)" ${python_found})
if(NOT BITFED_PYTHON)
  return()
endif()
if(NOT python_found)
  message(FATAL_ERROR "BITFED_PYTHON: expected Python 3.11 or later with its headers (Debian: apt install "
    "python3-dev), and its package nanobind")
endif()
add_subdirectory(python)
