# bitfed_cuda: trainers on a GPU. Built for Hopper (H100, H200), and as PTX for what comes after it.

if(NOT DEFINED BITFED_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(found ON)
  else()
    set(found OFF)
  endif()
endif()
option(BITFED_CUDA "Train networks on NVIDIA GPUs (needs nvcc)" ${found})
if(NOT BITFED_CUDA)
  return()
endif()

# 90a: the tensor cores by groups of warps, which Hopper alone has; others compile the plain form.
set(CMAKE_CUDA_ARCHITECTURES 90a-real 90-virtual CACHE STRING "GPUs to compile for")
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that CUDA 13 has it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
find_package(CUDAToolkit REQUIRED)
bitfed_layer(cuda)
file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bitfed/cuda/*.cu)
target_sources(bitfed_cuda PRIVATE ${kernels})
get_target_property(sources bitfed_cuda SOURCES)
list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/bitfed/cuda/emulation.cc)
set_target_properties(bitfed_cuda PROPERTIES SOURCES "${sources}")
# No contraction: a fused multiply-add is where it is written, as on the CPU.
set_source_files_properties(${kernels} PROPERTIES COMPILE_OPTIONS "-fmad=false;-O3;--expt-relaxed-constexpr")
target_link_libraries(bitfed_cuda PUBLIC CUDA::cudart_static)
