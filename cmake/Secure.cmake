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

bitfed_layer(secure SMALL NORMAL protocol)
target_link_libraries(bitfed_secure PRIVATE OpenSSL::Crypto)
target_compile_definitions(bitfed_secure INTERFACE BITFED_SECURE)
