# Folders are layers: a file includes only headers of its own folder and of those to its left. Run as
#   cmake -DSOURCE=<repository> -DWORK=<scratch folder> -P layering_test.cmake

cmake_minimum_required(VERSION 3.25)

# What each layer may include besides itself. Siblings (model's users tsetlin and nn; simulation, rpc and report)
# do not see each other.
set(see_base "")
set(see_bits base)
set(see_data base bits)
set(see_model base bits data)
set(see_tsetlin base bits data model)
set(see_nn base bits data model)
set(see_zoo base bits data model tsetlin nn)
set(see_edge base bits data model tsetlin nn zoo)
set(see_federated base bits data model tsetlin nn zoo)
set(see_simulation base bits data model tsetlin nn zoo federated)
set(see_rpc base bits data model tsetlin nn zoo federated)
set(see_report base bits data model tsetlin nn zoo)
set(see_cli base bits data model tsetlin nn zoo federated simulation rpc report edge)

# Sets `result` to one line per include that goes up, sideways or outside the layers.
function(find_violations root result)
  set(found "")
  file(GLOB_RECURSE files RELATIVE ${root} ${root}/bitfed/*.h ${root}/bitfed/*.cc ${root}/cli/*.h ${root}/cli/*.cc)
  foreach(file IN LISTS files)
    string(REGEX REPLACE "^(bitfed/)?([^/]+)/.*$" "\\2" layer ${file})
    if(NOT DEFINED see_${layer})
      list(APPEND found "${file}: the folder '${layer}' is not a layer")
      continue()
    endif()
    file(STRINGS ${root}/${file} includes REGEX "^[ \t]*#[ \t]*include[ \t]*[\"<](bitfed|cli)/")
    foreach(line IN LISTS includes)
      string(REGEX REPLACE "^[^\"<]*[\"<](bitfed/)?([^/\">]+)/.*$" "\\2" included ${line})
      if(NOT included STREQUAL layer AND NOT included IN_LIST see_${layer})
        list(APPEND found "${file}: '${layer}' must not include '${included}': ${line}")
      endif()
    endforeach()
    # Only rpc sees what carries it.
    file(STRINGS ${root}/${file} outside REGEX "^[ \t]*#[ \t]*include[ \t]*[\"<](grpc|google/protobuf|bitfed_v1|sqlite3|openssl/)")
    if(outside AND NOT layer STREQUAL rpc)
      list(APPEND found "${file}: only 'rpc' sees gRPC, SQLite and OpenSSL: ${outside}")
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
check_one(bitfed/tsetlin/x.cc "bitfed/nn/layer.h" 1)                      # sideways
check_one(bitfed/report/x.cc "bitfed/federated/method.h" 1)
check_one(bitfed/simulation/x.cc "bitfed/report/page.h" 1)
check_one(bitfed/simulation/x.cc "bitfed/federated/methods/fedavg.h" 0)
check_one(bitfed/rpc/x.cc "bitfed/simulation/experiment.h" 1)
check_one(bitfed/rpc/x.cc "bitfed/federated/transport.h" 0)
check_one(bitfed/rpc/x.cc "grpcpp/grpcpp.h" 0)
check_one(bitfed/federated/x.cc "grpcpp/grpcpp.h" 1)
check_one(cli/x.cc "sqlite3.h" 1)
check_one(bitfed/zoo/x.cc "cli/commands.h" 1)
check_one(cli/x.cc "bitfed/simulation/transport.h" 0)
check_one(bitfed/utils/x.cc "bitfed/base/error.h" 1)                      # no layer at all
file(REMOVE_RECURSE ${WORK})

find_violations(${SOURCE} violations)
if(violations)
  list(JOIN violations "\n  " text)
  message(FATAL_ERROR "includes against the layers:\n  ${text}")
endif()
message("all includes follow the layers")
