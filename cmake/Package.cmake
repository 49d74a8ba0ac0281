# `cmake --install` gives the program, the libraries and a package for find_package(bitfed).

include(CMakePackageConfigHelpers)

# The program lies at the top of the build folder: build/release/bitfed.
set_target_properties(bitfed_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

list(TRANSFORM BITFED_LAYERS PREPEND bitfed_ OUTPUT_VARIABLE layer_targets)
install(TARGETS ${layer_targets} EXPORT bitfed
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/bitfed)
install(TARGETS bitfed_c LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${PROJECT_SOURCE_DIR}/include/bitfed.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS bitfed_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(BITFED_RPC)
  set_target_properties(bitfed_client PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  install(TARGETS bitfed_client RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
include(PublicHeaders)
foreach(header IN LISTS BITFED_PUBLIC_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/bitfed/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/bitfed/${folder})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/bitfed OPTIONAL)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/bitfed)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/bitfed-config.cmake.in
  ${PROJECT_BINARY_DIR}/bitfed-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/bitfed-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(EXPORT bitfed NAMESPACE bitfed:: DESTINATION ${package_dir} FILE bitfed-targets.cmake)
install(FILES ${PROJECT_BINARY_DIR}/bitfed-config.cmake ${PROJECT_BINARY_DIR}/bitfed-config-version.cmake
  DESTINATION ${package_dir})
