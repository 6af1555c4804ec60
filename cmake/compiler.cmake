# SPDX-License-Identifier: Apache-2.0
# The compiler flags of all targets.
if(CMAKE_CXX_COMPILER_ID STREQUAL "MSVC")
  message(FATAL_ERROR "The compiler: expected GCC 12, Clang 16 or newer, got Microsoft's, which lacks builtin functions "
                      "of both. Install clang for Windows, and set CC=clang and CXX=clang++.")
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(POLYOP_WASM)
  include_directories("${POLYOP_ROOT}/platform/wasm/include") # before POLYOP_ROOT
else()
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

# Programs are PIE, because they link position-independent static libraries.
include(CheckPIESupported)
check_pie_supported()

# Without CCACHE_SLOPPINESS, ccache always recompiles sources that use a precompiled header (cmake/precompiled.cmake).
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros "${CCACHE_PROGRAM}")
endif()

# No -march=native: kernels are compiled once per instruction set and selected at run time. The compiler does not fuse
# multiplications and additions; kernels do so explicitly, so that comparisons (is this overlap above the threshold?)
# have the same result on every instruction set.
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Wall> $<$<COMPILE_LANGUAGE:C,CXX>:-Wextra>
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wshadow> $<$<COMPILE_LANGUAGE:C,CXX>:-ffp-contract=off>)
# GCC 12 reports false overlaps in std::string's operator+ (GCC bug 105651).
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)
if(CMAKE_COLOR_DIAGNOSTICS OR DEFINED ENV{CLICOLOR_FORCE})
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fdiagnostics-color=always>)
endif()

# Checks for null pointers cost a fifth of the compilation time, and a null access ends the program anyway.
if(POLYOP_SANITIZE)
  add_compile_options(-fsanitize=${POLYOP_SANITIZE} -fno-sanitize=null -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${POLYOP_SANITIZE})
endif()

# polyop_self_contained(TARGET): links the C++ runtime statically and allows no undefined symbols, for distribution.
# Sanitizers do not support this.
function(polyop_self_contained target)
  if(NOT POLYOP_SANITIZE)
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY")
      set(scope INTERFACE)
    else()
      set(scope PRIVATE)
    endif()
    if(APPLE)
      target_link_options(${target} ${scope} -Wl,-dead_strip)
    elseif(NOT WIN32 OR MINGW) # Microsoft's linker allows no undefined symbols
      target_link_options(${target} ${scope} -static-libstdc++ -static-libgcc -Wl,--no-undefined -Wl,--gc-sections)
    endif()
  endif()
endfunction()
