# The layer secure: secure aggregation, by OpenSSL's primitives. Without OpenSSL a recipe that asks for it is refused.

find_package(OpenSSL QUIET)
if(OPENSSL_FOUND AND NOT CMAKE_CROSSCOMPILING)
  set(openssl_found ON)
else()
  set(openssl_found OFF)
endif()
option(BITFED_SECURE "Secure aggregation ([privacy] secure_aggregation): OpenSSL" ${openssl_found})
if(NOT BITFED_SECURE)
  return()
endif()
if(NOT openssl_found)
  message(FATAL_ERROR "BITFED_SECURE: expected OpenSSL, for this machine")
endif()

bitfed_layer(secure SMALL)
if(CMAKE_BUILD_TYPE STREQUAL Release)
  foreach(file masks pair primitives shamir)  # where the time goes
    set_source_files_properties(${PROJECT_SOURCE_DIR}/bitfed/secure/protocol/${file}.cc PROPERTIES COMPILE_OPTIONS -O2)
  endforeach()
endif()
target_link_libraries(bitfed_secure PRIVATE OpenSSL::Crypto)
target_compile_definitions(bitfed_secure INTERFACE BITFED_SECURE)
