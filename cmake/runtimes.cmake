# SPDX-License-Identifier: Apache-2.0
# The parts of every library of operators other than the operators: platform/, core/, kernels/ and the adapters, as
# OBJECT libraries.
set(platform "${POLYOP_ROOT}/platform/posix")
if(WIN32)
  set(platform "${POLYOP_ROOT}/platform/windows")
elseif(POLYOP_WASM)
  set(platform "${POLYOP_ROOT}/platform/wasm")
endif()
file(GLOB core_sources CONFIGURE_DEPENDS "${POLYOP_ROOT}/core/*.cc")
list(APPEND core_sources "${platform}/memory.cc" "${platform}/process.cc")
file(GLOB kernels_sources CONFIGURE_DEPENDS "${POLYOP_ROOT}/kernels/*/*.cc")
list(FILTER core_sources EXCLUDE REGEX "_test\\.cc$")
list(FILTER kernels_sources EXCLUDE REGEX "_test\\.cc$")
if(POLYOP_WASM)
  list(APPEND core_sources "${platform}/exceptions.cc")
  list(FILTER kernels_sources EXCLUDE REGEX "/thread_pool\\.cc$")
endif()
add_library(polyop_core OBJECT ${core_sources})
target_include_directories(polyop_core PUBLIC "${POLYOP_ROOT}")
target_link_libraries(polyop_core PUBLIC Threads::Threads)
add_library(polyop_kernels OBJECT ${kernels_sources})
target_link_libraries(polyop_kernels PUBLIC polyop_core polyop_hwy)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND polyop_std_headers <immintrin.h>) # Highway includes it; it compiles as slowly as all others together
endif()
polyop_precompile(polyop_kernels ${polyop_std_headers})
if(POLYOP_CUDA)
  file(GLOB kernels_cuda_sources CONFIGURE_DEPENDS "${POLYOP_ROOT}/kernels/cuda/*.cu")
  target_sources(polyop_kernels PRIVATE ${kernels_cuda_sources})
  target_link_libraries(polyop_kernels PUBLIC $<LINK_ONLY:CUDA::cudart_static>) # only .cu files need its headers
endif()

# The operators' definitions, and their shape inference, as JSON, for several adapters and the CLI.
add_library(polyop_catalogue OBJECT EXCLUDE_FROM_ALL "${POLYOP_ROOT}/adapters/catalogue.cc"
  "${POLYOP_ROOT}/adapters/patterns.cc" "${POLYOP_ROOT}/adapters/resolve.cc" "${POLYOP_ROOT}/adapters/shapes.cc"
  "${POLYOP_ROOT}/adapters/synthetic_rows.cc")
target_link_libraries(polyop_catalogue PUBLIC polyop_core nlohmann_json::nlohmann_json)
target_compile_definitions(polyop_catalogue PRIVATE POLYOP_CUDA=$<BOOL:${POLYOP_CUDA}>)

# The patterns of all rooms, which register themselves, for the libraries for ONNX Runtime. The SDK has none.
file(GLOB patterns CONFIGURE_DEPENDS "${POLYOP_ROOT}/ops/*/patterns/*.cc")
set(POLYOP_PATTERNS "")
if(patterns)
  add_library(polyop_patterns OBJECT EXCLUDE_FROM_ALL ${patterns})
  target_link_libraries(polyop_patterns PUBLIC polyop_core)
  set(POLYOP_PATTERNS $<TARGET_OBJECTS:polyop_patterns>)
endif()

add_subdirectory(adapters/c)
if(POLYOP_BUILD_ONNXRUNTIME)
  add_subdirectory(adapters/onnxruntime)
endif()
if(POLYOP_BUILD_TENSORRT AND NOT POLYOP_FUZZ AND NOT POLYOP_SANITIZE STREQUAL "thread")
  add_subdirectory(adapters/tensorrt)
endif()
if(POLYOP_BUILD_TORCH AND NOT POLYOP_SANITIZE AND NOT POLYOP_FUZZ)
  add_subdirectory(adapters/torch)
endif()
if(POLYOP_OPENVINO_LIBRARY)
  install(FILES "${POLYOP_OPENVINO_LIBRARY}" DESTINATION "${POLYOP_INSTALL_ROOT}lib" COMPONENT libraries)
elseif(POLYOP_BUILD_OPENVINO AND NOT POLYOP_FUZZ)
  add_subdirectory(adapters/openvino)
endif()
