# For `pip install .`: the libraries that pyproject.toml requires come as Python packages, so that a system needs nothing
# but a compiler. pip puts them into a folder that scikit-build-core adds to CMAKE_PREFIX_PATH.
foreach(folder IN LISTS CMAKE_PREFIX_PATH)
  # fmt and zlib lie as if installed under cmeel.prefix.
  if(EXISTS ${folder}/cmeel.prefix)
    list(PREPEND CMAKE_PREFIX_PATH ${folder}/cmeel.prefix)
    # zlib itself is found on the system the module runs on: every Python there needs it.
    file(GLOB ZLIB_LIBRARY ${folder}/cmeel.prefix/lib*/libz.so)
    set(ZLIB_INCLUDE_DIR ${folder}/cmeel.prefix/include)
  endif()
  if(EXISTS ${folder}/nlohmann_json/include AND NOT TARGET nlohmann_json::nlohmann_json)
    add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED GLOBAL)
    target_include_directories(nlohmann_json::nlohmann_json SYSTEM INTERFACE ${folder}/nlohmann_json/include)
  endif()
endforeach()
set(BITFED_FMT fmt::fmt-header-only)  # its shared library would be gone after the build
