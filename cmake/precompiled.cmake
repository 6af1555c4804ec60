# Headers that the compiler reads once: of the standard library and of other projects alone. polyop's own headers change,
# and an edit of one shall compile what includes it, not all.
set(polyop_std_headers <algorithm> <array> <atomic> <bit> <cmath> <concepts> <cstdint> <cstdio> <cstdlib> <cstring>
  <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <span> <string> <string_view> <thread> <tuple>
  <type_traits> <utility> <variant> <vector>)

# polyop_precompile(TARGET HEADER…): these headers, precompiled for TARGET, and for those that reuse them.
function(polyop_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  polyop_cache_precompiled(${target})
endfunction()

# polyop_reuse_precompiled(TARGET FROM): both are compiled with the same flags and definitions.
function(polyop_reuse_precompiled target from)
  target_precompile_headers(${target} REUSE_FROM ${from})
  polyop_cache_precompiled(${target})
endfunction()

# ccache sees what a source includes only if GCC leaves the mark of the precompiled header in the preprocessed text. GCC 12
# forgets that precompiled headers are the system's, and warns of overlaps in std::string that are not there (its bug 105651).
function(polyop_cache_precompiled target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE
        $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow>)
    endif()
  endif()
endfunction()
