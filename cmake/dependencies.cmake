# SPDX-License-Identifier: Apache-2.0
# Third-party libraries. Those that stable distributions lack are in .deps/ (tools/setup_deps.sh).

# polyop_find_root(VARIABLE FOLDER FILE): sets VARIABLE to the folder that contains FILE, from the cache, the
# environment, or FOLDER of POLYOP_THIRD_PARTY.
function(polyop_find_root variable folder file)
  set(default "$ENV{${variable}}")
  if(NOT default)
    set(default "${POLYOP_THIRD_PARTY}/${folder}")
  endif()
  set(${variable} "${default}" CACHE PATH "Folder that holds ${file}")
  if(NOT EXISTS "${${variable}}/${file}" AND "${${variable}}" STREQUAL "${POLYOP_ROOT}/.deps/${folder}")
    execute_process(COMMAND "${POLYOP_ROOT}/tools/setup_deps.sh")
  endif()
  if(NOT EXISTS "${${variable}}/${file}")
    message(FATAL_ERROR "${variable}='${${variable}}' has no ${file}. Run tools/setup_deps.sh, or set ${variable}.")
  endif()
endfunction()

# Prefers static archives, so that programs run on machines without these libraries.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
set(THREADS_PREFER_PTHREAD_FLAG ON)
if(POLYOP_WASM) # one thread
  add_library(Threads::Threads INTERFACE IMPORTED)
else()
  find_package(Threads REQUIRED)
endif()

# JSON, for the operators' definitions. The SDK contains its headers.
if(EXISTS "${POLYOP_THIRD_PARTY}/nlohmann/json.hpp")
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED GLOBAL)
  target_include_directories(nlohmann_json::nlohmann_json SYSTEM INTERFACE "${POLYOP_THIRD_PARTY}")
else()
  find_package(nlohmann_json REQUIRED)
endif()

# Sets a variable to Highway's name of this machine's best instruction set beyond the baseline, or to none.
function(polyop_native_target variable)
  file(TOUCH "${CMAKE_BINARY_DIR}/empty.cc")
  execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -march=native -dM -E "${CMAKE_BINARY_DIR}/empty.cc"
                  OUTPUT_VARIABLE macros COMMAND_ERROR_IS_FATAL ANY)
  set(target none)
  if(macros MATCHES "__AVX512BW__" AND macros MATCHES "__AVX512DQ__" AND macros MATCHES "__AVX512VL__")
    set(target AVX3)
  elseif(macros MATCHES "__AVX2__" AND macros MATCHES "__FMA__")
    set(target AVX2)
  endif()
  message(STATUS "Kernels: the baseline and, for this machine, ${target}")
  set(${variable} ${target} PARENT_SCOPE)
endfunction()

# Highway, built from upstream's sources, so that it is static, has hidden symbols, and uses the kernels' instruction
# sets.
polyop_find_root(POLYOP_HIGHWAY_ROOT highway hwy/highway.h)
set(highway_sources aligned_allocator.cc abort.cc per_target.cc print.cc targets.cc timer.cc)
list(TRANSFORM highway_sources PREPEND "${POLYOP_HIGHWAY_ROOT}/hwy/")
add_library(polyop_hwy STATIC EXCLUDE_FROM_ALL ${highway_sources})
target_include_directories(polyop_hwy SYSTEM PUBLIC "${POLYOP_HIGHWAY_ROOT}")
target_compile_definitions(polyop_hwy PUBLIC HWY_STATIC_DEFINE)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # x86-64-v2 is SSE4.2, which every processor since 2009 supports; SSE2 and SSSE3 are not compiled.
  target_compile_options(polyop_hwy PUBLIC -march=${POLYOP_HWY_BASELINE})
  target_compile_definitions(polyop_hwy PUBLIC HWY_DISABLE_PCLMUL_AES)
  set(disabled SSE2 SSSE3 AVX2 AVX3 AVX3_DL AVX3_ZEN4 AVX3_SPR)
  set(targets ${POLYOP_HWY_TARGETS})
  if(targets STREQUAL native)
    polyop_native_target(targets)
  endif()
  list(REMOVE_ITEM disabled ${targets})
  list(TRANSFORM disabled PREPEND HWY_)
  list(JOIN disabled "|" disabled)
  target_compile_definitions(polyop_hwy PUBLIC "HWY_DISABLED_TARGETS=(${disabled})")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  # Only NEON, which every such processor supports. Other targets add AES and bf16 products, which no kernel uses, and
  # SVE's vectors have no compile-time size, so they cannot be stored in arrays or classes, as kernels do.
  target_compile_definitions(polyop_hwy PUBLIC "HWY_DISABLED_TARGETS=(HWY_NEON|HWY_NEON_BF16|HWY_ALL_SVE)")
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "riscv64")
  # The vectors of RVV have no compile-time size either. The compiler vectorises Highway's emulation of 128 bits.
  target_compile_definitions(polyop_hwy PUBLIC "HWY_DISABLED_TARGETS=(HWY_RVV)")
endif()

# ONNX Runtime: headers only. The adapter gets the runtime from its caller, the CLI loads it.
if(POLYOP_BUILD_ONNXRUNTIME OR POLYOP_BUILD_CLI)
  polyop_find_root(ONNXRUNTIME_ROOT onnxruntime include/onnxruntime_c_api.h)
  add_library(polyop_onnxruntime_headers INTERFACE)
  target_include_directories(polyop_onnxruntime_headers SYSTEM INTERFACE "${ONNXRUNTIME_ROOT}/include")
  target_compile_definitions(polyop_onnxruntime_headers INTERFACE ORT_API_MANUAL_INIT)
  target_link_libraries(polyop_onnxruntime_headers INTERFACE ${CMAKE_DL_LIBS})
  if(MINGW) # its sal.h lacks an annotation of ONNX Runtime's header; CMake rejects it as a definition
    target_compile_options(polyop_onnxruntime_headers INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-D_Return_type_success_(x)=>")
  endif()
endif()
