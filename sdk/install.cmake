# SPDX-License-Identifier: Apache-2.0
# Installs the SDK with its CMake package for authors of operators, and a header for C++ programs.
include(CMakePackageConfigHelpers)
set(package "${POLYOP_INSTALL_ROOT}lib/cmake/polyop")
set(sdk "${POLYOP_INSTALL_ROOT}share/polyop/sdk")

install(FILES sdk/include/polyop/onnxruntime.h adapters/c/polyop.h DESTINATION "${POLYOP_INSTALL_ROOT}include/polyop")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/polyopConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES sdk/polyopConfig.cmake "${PROJECT_BINARY_DIR}/polyopConfigVersion.cmake" DESTINATION "${package}")
if(NOT SKBUILD) # a wheel has them in its metadata
  install(FILES LICENSE THIRD_PARTY_LICENSES DESTINATION share/polyop)
endif()

install(FILES sdk/CMakeLists.txt DESTINATION "${sdk}")
install(DIRECTORY cmake DESTINATION "${sdk}"
  PATTERN cli_dependencies.cmake EXCLUDE PATTERN packaging.cmake EXCLUDE PATTERN portable EXCLUDE PATTERN toolchains EXCLUDE)
install(DIRECTORY platform core kernels testing adapters DESTINATION "${sdk}" FILES_MATCHING
  PATTERN "*.h" PATTERN "*.cc" PATTERN "*.cu" PATTERN "*.map" PATTERN CMakeLists.txt PATTERN "*_test.cc" EXCLUDE)
file(GLOB shared CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" ops/*/*.h ops/*/*.cc) # what the rooms' operators share
list(FILTER shared EXCLUDE REGEX "_test\\.cc$")
foreach(file IN LISTS shared)
  cmake_path(GET file PARENT_PATH room)
  install(FILES "${file}" DESTINATION "${sdk}/${room}")
endforeach()
install(FILES tests/robustness_test.cc DESTINATION "${sdk}/tests") # random calls

# Third-party files: Highway, the headers of JSON and ONNX Runtime, and GoogleTest's source for the operators' tests.
install(DIRECTORY "${POLYOP_HIGHWAY_ROOT}/hwy" DESTINATION "${sdk}/third_party/highway" FILES_MATCHING
  PATTERN "*.h" PATTERN "*.cc" PATTERN "*_test.cc" EXCLUDE
  PATTERN contrib EXCLUDE PATTERN examples EXCLUDE PATTERN tests EXCLUDE)
install(DIRECTORY "${POLYOP_HIGHWAY_ROOT}/hwy/contrib/math" DESTINATION "${sdk}/third_party/highway/hwy/contrib"
  FILES_MATCHING PATTERN "*.h")
install(DIRECTORY "${ONNXRUNTIME_ROOT}/include" DESTINATION "${sdk}/third_party/onnxruntime" FILES_MATCHING
  PATTERN "onnxruntime_*.h" PATTERN core EXCLUDE)
get_target_property(includes nlohmann_json::nlohmann_json INTERFACE_INCLUDE_DIRECTORIES)
find_path(POLYOP_JSON_INCLUDE nlohmann/json.hpp HINTS ${includes} NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
install(DIRECTORY "${POLYOP_JSON_INCLUDE}/nlohmann" DESTINATION "${sdk}/third_party" FILES_MATCHING PATTERN "*.hpp")
find_path(POLYOP_GOOGLETEST_ROOT src/gtest-all.cc PATHS /usr/src/googletest/googletest NO_DEFAULT_PATH
  NO_CMAKE_FIND_ROOT_PATH DOC "Folder of GoogleTest's source")
if(POLYOP_GOOGLETEST_ROOT)
  install(DIRECTORY "${POLYOP_GOOGLETEST_ROOT}/include" "${POLYOP_GOOGLETEST_ROOT}/src"
    DESTINATION "${sdk}/third_party/googletest" FILES_MATCHING PATTERN "*.h" PATTERN "*.cc")
endif()
