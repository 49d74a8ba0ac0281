# The layer mpi: simulations over several processes. It needs no MPI library; what does, is the module bitfed-mpi.so,
# which the program loads where a launcher has started it, and which is built where an MPI library is found.

bitfed_layer(mpi TOGETHER)
get_target_property(sources bitfed_mpi SOURCES)
list(FILTER sources EXCLUDE REGEX /mpi/module/)
set_target_properties(bitfed_mpi PROPERTIES SOURCES "${sources}")
target_link_libraries(bitfed_mpi PRIVATE ${CMAKE_DL_LIBS})
# From the program's folder, so that the prefix can be moved.
file(RELATIVE_PATH modules_from_program /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR}/bitfed)
target_compile_definitions(bitfed_mpi PRIVATE BITFED_MODULES_FROM_PROGRAM="${modules_from_program}")

set(mpi_found OFF)
if(NOT CMAKE_CROSSCOMPILING)
  find_package(MPI QUIET COMPONENTS CXX)
  set(mpi_found ${MPI_CXX_FOUND})
endif()
option(BITFED_MPI "Build the module for MPI (mpirun bitfed run)" ${mpi_found})
if(NOT BITFED_MPI)
  return()
endif()
if(NOT mpi_found)
  message(FATAL_ERROR "BITFED_MPI: expected an MPI library with its headers, for this machine")
endif()
add_library(bitfed_mpi_module MODULE bitfed/mpi/module/mpi_module.cc)
set_target_properties(bitfed_mpi_module PROPERTIES PREFIX "" OUTPUT_NAME bitfed-mpi SUFFIX .so
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} CXX_VISIBILITY_PRESET hidden)
target_include_directories(bitfed_mpi_module PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(bitfed_mpi_module PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
target_link_libraries(bitfed_mpi_module PRIVATE MPI::MPI_CXX bitfed_options bitfed_hardened)
install(TARGETS bitfed_mpi_module LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/bitfed)
