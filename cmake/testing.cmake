# SPDX-License-Identifier: Apache-2.0
# Each file that ends in _test.cc is a GoogleTest program of the same name.
enable_testing()
# Tests are not optimised, because they spend their time in kernels, and UBSan checks only kernels.
set(polyop_test_options -O0 -fno-sanitize=undefined)
set(polyop_emulated_options -O1)

# Generates a C++ file that includes a .cu file, because CMake fixes the language of .cu files. kernels/cuda/cuda.h lets
# it compile as C++.
function(polyop_cuda_as_cxx source wrapper)
  cmake_path(GET source STEM name)
  set(file "${PROJECT_BINARY_DIR}/cuda_as_cxx/${name}.cc")
  file(CONFIGURE OUTPUT "${file}" CONTENT "#include \"${source}\"\n")
  set(${wrapper} "${file}" PARENT_SCOPE)
endfunction()

if(POLYOP_BUILD_TESTS OR POLYOP_FUZZ)
  if(EXISTS "${POLYOP_THIRD_PARTY}/googletest/src/gtest-all.cc") # in the SDK
    foreach(part IN ITEMS gtest gtest_main)
      add_library(polyop_${part} STATIC EXCLUDE_FROM_ALL)
      add_library(GTest::${part} ALIAS polyop_${part})
      target_include_directories(polyop_${part} SYSTEM PUBLIC "${POLYOP_THIRD_PARTY}/googletest/include"
        PRIVATE "${POLYOP_THIRD_PARTY}/googletest")
      target_compile_options(polyop_${part} PRIVATE -w)
      target_link_libraries(polyop_${part} PUBLIC Threads::Threads)
    endforeach()
    target_sources(polyop_gtest PRIVATE "${POLYOP_THIRD_PARTY}/googletest/src/gtest-all.cc")
    target_sources(polyop_gtest_main PRIVATE "${POLYOP_THIRD_PARTY}/googletest/src/gtest_main.cc")
    target_link_libraries(polyop_gtest_main PUBLIC polyop_gtest)
  else()
    find_package(GTest REQUIRED)
  endif()
  set(device_sort "")
  set(library_product "")
  if(NOT POLYOP_CUDA)
    polyop_cuda_as_cxx("${POLYOP_ROOT}/kernels/cuda/device_sort.cu" device_sort)
    polyop_cuda_as_cxx("${POLYOP_ROOT}/kernels/cuda/library_product.cu" library_product)
  endif()
  file(GLOB testing_sources CONFIGURE_DEPENDS "${POLYOP_ROOT}/testing/*.cc")
  add_library(polyop_testing OBJECT ${testing_sources} ${device_sort} ${library_product})
  if(POLYOP_CUDA)
    target_compile_definitions(polyop_testing PRIVATE POLYOP_CUDA)
    target_include_directories(polyop_testing SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  target_link_libraries(polyop_testing PUBLIC polyop_kernels GTest::gtest)
  target_compile_options(polyop_testing PUBLIC -Wno-shadow) # GoogleTest's macros shadow

  # Precompiled headers for CUDA kernels that are compiled as C++. These are barely optimised: a test runs them once or
  # twice.
  if(NOT POLYOP_CUDA AND NOT POLYOP_SANITIZE STREQUAL "thread")
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/emulated_headers.cc" CONTENT "")
    add_library(polyop_emulated_headers OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/emulated_headers.cc")
    target_link_libraries(polyop_emulated_headers PUBLIC polyop_kernels)
    target_compile_options(polyop_emulated_headers PRIVATE ${polyop_emulated_options})
    polyop_precompile(polyop_emulated_headers ${polyop_std_headers})
  endif()

  # Precompiled headers of tests, with their flags. The target is an executable, because flags of libraries differ.
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/test_headers.cc" CONTENT "int main() { return 0; }\n")
  add_executable(polyop_test_headers EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/test_headers.cc")
  target_link_libraries(polyop_test_headers PRIVATE polyop_hwy GTest::gtest Threads::Threads)
  target_compile_options(polyop_test_headers PRIVATE -Wno-shadow ${polyop_test_options})
  polyop_precompile(polyop_test_headers ${polyop_std_headers} <gtest/gtest.h>)
endif()

# polyop_add_tests(FOLDER [TARGET…]): adds every *_test.cc of the folder as a test that links the targets.
function(polyop_add_tests folder)
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
  cmake_path(GET folder FILENAME label)
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*_test.cc")
  polyop_add_test_files(${label} "${sources}" ${ARGN})
endfunction()

# polyop_add_test_files(LABEL SOURCES [TARGET…]): adds these files as tests that link the targets.
function(polyop_add_test_files label sources)
  if(NOT POLYOP_BUILD_TESTS)
    return()
  endif()
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM name)
    add_executable(${name} "${source}")
    target_link_libraries(${name} PRIVATE ${ARGN} polyop_kernels polyop_core polyop_testing GTest::gtest_main)
    target_compile_options(${name} PRIVATE ${polyop_test_options})
    polyop_reuse_precompiled(${name} polyop_test_headers)
    if(name STREQUAL "robustness_test") # the longest: two processes, which start first
      foreach(half IN ITEMS 0 1)
        add_test(NAME ${name}.${half} COMMAND ${name})
        set_tests_properties(${name}.${half} PROPERTIES COST 100
          ENVIRONMENT "GTEST_TOTAL_SHARDS=2;GTEST_SHARD_INDEX=${half}")
      endforeach()
      set(tests ${name}.0 ${name}.1)
    else()
      add_test(NAME ${name} COMMAND ${name})
      set(tests ${name})
    endif()
    # A skipped or empty test fails.
    set_tests_properties(${tests} PROPERTIES LABELS "${label}" TIMEOUT 600
      FAIL_REGULAR_EXPRESSION "\\[  SKIPPED \\];Running 0 tests")
  endforeach()
endfunction()
