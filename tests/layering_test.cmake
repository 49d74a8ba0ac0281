# Folders are layers: a file includes only headers of its own folder and of those to its left. Run as
#   cmake -DSOURCE=<repository> -DWORK=<scratch folder> -P layering_test.cmake

cmake_minimum_required(VERSION 3.25)

include(${CMAKE_CURRENT_LIST_DIR}/../cmake/Layers.cmake)

# The room of bitfed/nn/kernels/isa/x.cc is nn/kernels if that has a line of its own, else nn; of cli/x.cc it is cli.
function(room_of path result)
  string(REGEX REPLACE "^bitfed/" "" path ${path})
  string(REGEX MATCH "^[^/]+" layer ${path})
  string(REGEX MATCH "^[^/]+/[^/]+/" room ${path})
  string(REGEX REPLACE "/$" "" room "${room}")
  if(room AND DEFINED BITFED_SEES_${room})
    set(layer ${room})
  endif()
  set(${result} ${layer} PARENT_SCOPE)
endfunction()

# Sets `result` to one line per include that goes up, sideways or outside the layers.
function(find_violations root result)
  set(found "")
  file(GLOB_RECURSE files RELATIVE ${root} ${root}/bitfed/*.h ${root}/bitfed/*.cc ${root}/cli/*.h ${root}/cli/*.cc
    ${root}/python/*.h ${root}/python/*.cc)
  foreach(file IN LISTS files)
    room_of(${file} room)
    string(REGEX REPLACE "/.*" "" layer ${room})
    if(NOT DEFINED BITFED_SEES_${room})
      list(APPEND found "${file}: the folder '${room}' is not a layer")
      continue()
    endif()
    file(STRINGS ${root}/${file} includes REGEX "^[ \t]*#[ \t]*include[ \t]*[\"<](bitfed|cli|python)/")
    foreach(line IN LISTS includes)
      string(REGEX REPLACE "^[^\"<]*[\"<]([^\">]+)[\">].*$" "\\1" included ${line})
      room_of(${included} included)
      string(REGEX REPLACE "/.*" "" included_layer ${included})
      # A room sees what its line names; of another layer it sees every room.
      if(NOT included STREQUAL room AND NOT included IN_LIST BITFED_SEES_${room} AND
         (included_layer STREQUAL layer AND NOT room STREQUAL layer OR
          NOT included_layer STREQUAL layer AND NOT included_layer IN_LIST BITFED_SEES_${room}))
        list(APPEND found "${file}: '${room}' must not include '${included}': ${line}")
      endif()
    endforeach()
    # Only rpc sees what carries it, and it and secure see OpenSSL.
    file(STRINGS ${root}/${file} outside REGEX "^[ \t]*#[ \t]*include[ \t]*[\"<](grpc|google/protobuf|bitfed_v1|sqlite3)")
    file(STRINGS ${root}/${file} openssl REGEX "^[ \t]*#[ \t]*include[ \t]*[\"<]openssl/")
    if(outside AND NOT layer STREQUAL rpc)
      list(APPEND found "${file}: only 'rpc' sees gRPC and SQLite: ${outside}")
    endif()
    if(openssl AND NOT layer STREQUAL rpc AND NOT layer STREQUAL secure)
      list(APPEND found "${file}: only 'rpc' and 'secure' see OpenSSL: ${openssl}")
    endif()
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# A file with one include, alone in a tree of its own.
function(check_one file include expected)
  file(REMOVE_RECURSE ${WORK})
  file(WRITE ${WORK}/${file} "#include \"${include}\"\n")
  find_violations(${WORK} violations)
  list(LENGTH violations count)
  if(NOT count EQUAL expected)
    message(FATAL_ERROR "self-check: ${file} with ${include} gave ${count} violations, expected ${expected}")
  endif()
endfunction()

check_one(bitfed/bits/x.cc "bitfed/base/error.h" 0)
check_one(bitfed/bits/isa/x.cc "bitfed/bits/isa/units.h" 0)
check_one(bitfed/base/x.h "bitfed/bits/kernels.h" 1)                      # up
check_one(bitfed/bits/isa/x.cc "bitfed/model/model.h" 1)                  # up, from a folder within
check_one(bitfed/tsetlin/x.cc "bitfed/nn/layers/layer.h" 1)                      # sideways
check_one(bitfed/report/x.cc "bitfed/federated/method.h" 1)
check_one(bitfed/simulation/x.cc "bitfed/report/pages/page.h" 1)
check_one(bitfed/simulation/x.cc "bitfed/federated/methods/fedavg.h" 0)
check_one(bitfed/rpc/x.cc "bitfed/simulation/experiment.h" 1)
check_one(bitfed/rpc/x.cc "bitfed/federated/transport.h" 0)
check_one(bitfed/rpc/x.cc "grpcpp/grpcpp.h" 0)
check_one(bitfed/federated/x.cc "grpcpp/grpcpp.h" 1)
check_one(cli/x.cc "sqlite3.h" 1)
check_one(bitfed/secure/x.cc "sqlite3.h" 1)
check_one(bitfed/secure/protocol/x.cc "openssl/evp.h" 0)
check_one(bitfed/secure/protocol/x.cc "bitfed/federated/transport.h" 1)
check_one(cli/x.cc "openssl/evp.h" 1)
check_one(bitfed/zoo/x.cc "cli/commands.h" 1)
check_one(cli/x.cc "bitfed/simulation/transport.h" 0)
check_one(python/src/x.cc "bitfed/simulation/experiment.h" 0)
check_one(python/src/x.cc "python/src/arrays.h" 0)
check_one(python/src/x.cc "cli/commands.h" 1)
check_one(bitfed/simulation/x.cc "python/src/arrays.h" 1)
check_one(bitfed/utils/x.cc "bitfed/base/error.h" 1)                      # no layer at all
file(REMOVE_RECURSE ${WORK})

find_violations(${SOURCE} violations)
if(violations)
  list(JOIN violations "\n  " text)
  message(FATAL_ERROR "includes against the layers:\n  ${text}")
endif()
message("all includes follow the layers")
