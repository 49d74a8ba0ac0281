# For `pip install .`, before project() looks for a compiler: its message names none that could be installed.
find_program(BITFED_SOME_COMPILER NAMES $ENV{CXX} c++ g++ clang++)
if(NOT BITFED_SOME_COMPILER)
  message(FATAL_ERROR "found no C++ compiler, expected g++ or clang++ (Debian: apt install g++ python3-dev)")
endif()
