# One static library per layer: bitfed/<name>/**/*.cc becomes bitfed::<name>.

add_library(bitfed_options INTERFACE)
target_compile_options(bitfed_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  # Contraction to fused multiply-add would make results depend on the instruction set.
  -ffp-contract=off)

# Against memory errors, in what ships: canaries below buffers on the stack, checked copies, no writable tables of
# addresses. Not for kernels, whose loops they would slow down and whose input has been checked. -fstack-protector-strong
# would add 48 KB to the device's program.
add_library(bitfed_hardened INTERFACE)
target_compile_options(bitfed_hardened INTERFACE
  $<$<CONFIG:Release>:-fstack-protector> $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=2>)
target_link_options(bitfed_hardened INTERFACE $<$<CONFIG:Release>:LINKER:-z,relro,-z,now>)

# Several files at a time, so that headers and their templates are compiled once for all of them: half the time of a
# build from nothing. Not with ccache, which knows single files again; such builds also show a missing include.
option(BITFED_UNITY "Compile several files at a time, and precompile headers of tests, where there is no ccache" OFF)
if(CCACHE)
  set(BITFED_UNITY OFF)
endif()
function(bitfed_unity target size)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${BITFED_UNITY} UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

include(Layers)
set(BITFED_LAYERS "" CACHE INTERNAL "")

# Flags follow folders. SMALL: code that carries, checks and sets up; it is made small, since devices hold it, rather
# than fast, but for the rooms in FAST (-O3) and NORMAL (-O2); `.` is what lies in the layer's own folder. TOGETHER:
# files may be compiled together, but for the rooms APART, whose files use the same names for themselves; not in layers of
# which libbitfed.so takes single files.
function(bitfed_layer name)
  cmake_parse_arguments(ARG "SMALL;TOGETHER" "" "FAST;NORMAL;APART;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bitfed/${name}/*.cc)
  add_library(bitfed_${name} STATIC ${sources})
  add_library(bitfed::${name} ALIAS bitfed_${name})
  set_target_properties(bitfed_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(bitfed_${name} PUBLIC cxx_std_20)
  target_include_directories(bitfed_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set(below "")
  foreach(seen IN LISTS BITFED_SEES_${name})
    if(TARGET bitfed_${seen})  # some layers are not built everywhere
      list(APPEND below bitfed_${seen})
    endif()
  endforeach()
  target_link_libraries(bitfed_${name} PUBLIC ${below} ${ARG_LIBRARIES})
  if(NOT name STREQUAL cuda)
    target_link_libraries(bitfed_${name} PRIVATE $<BUILD_INTERFACE:bitfed_options>)
  endif()
  if(NOT name MATCHES "^(bits|nn|cuda)$")
    target_link_libraries(bitfed_${name} PRIVATE $<BUILD_INTERFACE:bitfed_hardened>)
  endif()
  # So that the linker can leave out what a program does not use.
  target_compile_options(bitfed_${name} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-ffunction-sections> $<$<COMPILE_LANGUAGE:CXX>:-fdata-sections>)
  foreach(source IN LISTS sources)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/bitfed/${name} OUTPUT_VARIABLE file)
    cmake_path(GET file PARENT_PATH room)
    if(room STREQUAL "")
      set(room .)
    endif()
    if(room IN_LIST ARG_APART)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
    if(ARG_SMALL AND CMAKE_BUILD_TYPE STREQUAL Release)
      if(room IN_LIST ARG_FAST)
        set(level -O3)
      elseif(room IN_LIST ARG_NORMAL)
        set(level -O2)
      else()
        set(level -Os)
      endif()
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS ${level})
    endif()
  endforeach()
  if(ARG_TOGETHER)
    bitfed_unity(bitfed_${name} 8)
  endif()
  set(BITFED_LAYERS ${BITFED_LAYERS} ${name} CACHE INTERNAL "")
endfunction()

# Each file of an isa folder is compiled for its own instruction set and never includes standard-library
# templates, so that no code built for a newer CPU can be linked into a path that an older one takes.
function(bitfed_isa_flags)
  set(isa ${PROJECT_SOURCE_DIR}/bitfed/bits/isa)
  set(nn ${PROJECT_SOURCE_DIR}/bitfed/nn/kernels/isa)
  # The plain loops are for reference; unrolled they would be half of a device's program.
  set_source_files_properties(${nn}/scalar.cc PROPERTIES COMPILE_OPTIONS "-Os")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set_source_files_properties(${isa}/avx2.cc PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>;-mavx2;-mbmi;-mbmi2;-mpopcnt;-mlzcnt")
    # GCC 12 takes the deliberately undefined operands in its own AVX-512 intrinsics for mistakes.
    set_source_files_properties(${isa}/avx512.cc PROPERTIES COMPILE_OPTIONS
      "$<$<CONFIG:Release>:-O3>;-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vpopcntdq;-mbmi;-mbmi2;-mpopcnt;-mlzcnt;-Wno-uninitialized;-Wno-maybe-uninitialized")
    set_source_files_properties(${nn}/avx2.cc PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma")
    set_source_files_properties(${nn}/avx512.cc PROPERTIES COMPILE_OPTIONS
      "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vnni;-mfma;-Wno-uninitialized;-Wno-maybe-uninitialized")
    set_source_files_properties(${nn}/amx.cc PROPERTIES COMPILE_OPTIONS
      "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vbmi;-mbmi2;-mamx-tile;-mamx-int8;-Wno-uninitialized;-Wno-maybe-uninitialized")
    set_source_files_properties(${nn}/binary_avx2.cc PROPERTIES COMPILE_OPTIONS "-mavx2")
    set_source_files_properties(${nn}/binary_avx512.cc PROPERTIES COMPILE_OPTIONS
      "-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512vpopcntdq;-Wno-uninitialized;-Wno-maybe-uninitialized")
  endif()
endfunction()
