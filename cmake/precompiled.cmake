# SPDX-License-Identifier: Apache-2.0
# Precompiled headers: only those of the standard library and of third parties. polyop's own headers are not
# precompiled, so that an edit of one recompiles only the files that include it.
set(polyop_std_headers <algorithm> <array> <atomic> <bit> <cmath> <concepts> <cstdint> <cstdio> <cstdlib> <cstring>
  <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <span> <string> <string_view> <thread> <tuple>
  <type_traits> <utility> <variant> <vector>)

# polyop_precompile(TARGET HEADER…): precompiles the headers for TARGET and for targets that reuse them.
function(polyop_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  polyop_cache_precompiled(${target})
endfunction()

# polyop_reuse_precompiled(TARGET FROM): uses the precompiled headers of FROM. Requires: both have the same flags and
# definitions.
function(polyop_reuse_precompiled target from)
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS) # of ${from}, too: CMake warns
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
  polyop_cache_precompiled(${target})
endfunction()

# With -fpch-preprocess, GCC keeps a reference to the precompiled header in the preprocessed text, which ccache needs.
# GCC 12 does not treat precompiled system headers as such, and reports false overlaps in std::string (GCC bug 105651).
function(polyop_cache_precompiled target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>)
    endif()
  endif()
endfunction()
