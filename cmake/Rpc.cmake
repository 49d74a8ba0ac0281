# The layer rpc: the only one that sees protobuf, gRPC and SQLite.

find_package(Protobuf QUIET)
find_package(gRPC CONFIG QUIET)
find_package(SQLite3 QUIET)
find_package(OpenSSL QUIET)
if(Protobuf_FOUND AND gRPC_FOUND AND SQLite3_FOUND AND OPENSSL_FOUND AND NOT CMAKE_CROSSCOMPILING)
  set(rpc_found ON)
else()
  set(rpc_found OFF)
endif()
option(BITFED_RPC "Federate over a network (bitfed serve, join, certs): gRPC, SQLite, OpenSSL" ${rpc_found})
if(NOT BITFED_RPC)
  return()
endif()
if(NOT rpc_found OR NOT BITFED_SECURE)
  message(FATAL_ERROR "BITFED_RPC: expected gRPC, protobuf, SQLite and OpenSSL (BITFED_SECURE), for this machine")
endif()

set(generated ${PROJECT_BINARY_DIR}/proto)
file(MAKE_DIRECTORY ${generated})
foreach(schema bitfed_v1 bitfed_operator_v1)
  set(sources ${generated}/${schema}.pb.cc ${generated}/${schema}.grpc.pb.cc)
  add_custom_command(OUTPUT ${sources} ${generated}/${schema}.pb.h ${generated}/${schema}.grpc.pb.h
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/proto --cpp_out=${generated} --grpc_out=${generated}
      --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> ${PROJECT_SOURCE_DIR}/proto/${schema}.proto
    DEPENDS ${PROJECT_SOURCE_DIR}/proto/${schema}.proto)
  list(APPEND generated_sources ${sources})
endforeach()

bitfed_layer(rpc SMALL TOGETHER)
target_sources(bitfed_rpc PRIVATE ${generated_sources})
# Generated code is not held to our warnings.
set_source_files_properties(${generated_sources} PROPERTIES COMPILE_OPTIONS "-w;-Os")
target_include_directories(bitfed_rpc SYSTEM PRIVATE ${generated})
target_link_libraries(bitfed_rpc PRIVATE gRPC::grpc++ protobuf::libprotobuf SQLite::SQLite3 OpenSSL::SSL OpenSSL::Crypto)
