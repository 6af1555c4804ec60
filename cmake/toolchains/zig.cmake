# For wheels that every Linux since 2018 takes: zig's clang with glibc's symbols of 2.28 and a C++ runtime of its own.
# Included with POLYOP_TARGET, a processor. tools/setup_portable.sh installs zig, and the libraries for the target.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR "${POLYOP_TARGET}")
cmake_path(SET root NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../..")
set(portable "${root}build/portable/${POLYOP_TARGET}")

# CMake and ccache want a program each. Without -fno-sanitize zig adds checks to what is not optimised. It compiles its
# C++ runtime for each level of optimisation and debug data anew: the first options are those of what ships, also where
# CMake asks without any. Linking strips, for this machine's strip may know this machine's processor alone.
foreach(tool IN ITEMS cc c++ ar ranlib)
  set(options "")
  if(tool MATCHES "^c")
    set(options "-target ${POLYOP_TARGET}-linux-gnu.2.28 -O3 -g0 -s -fno-sanitize=undefined")
  endif()
  file(CONFIGURE OUTPUT "${portable}/zig/zig-${tool}" CONTENT "#!/bin/sh
export ZIG_LOCAL_CACHE_DIR='${root}build/portable/zig-cache' ZIG_GLOBAL_CACHE_DIR='${root}build/portable/zig-cache'
exec '${root}.deps/wheel-tools/ziglang/zig' ${tool} ${options} \"$@\"
")
  file(CHMOD "${portable}/zig/zig-${tool}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
set(CMAKE_C_COMPILER "${portable}/zig/zig-cc")
set(CMAKE_CXX_COMPILER "${portable}/zig/zig-c++")
set(CMAKE_AR "${portable}/zig/zig-ar")
set(CMAKE_RANLIB "${portable}/zig/zig-ranlib")
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  foreach(language IN ITEMS C CXX)
    set(CMAKE_${language}_COMPILER_LAUNCHER env CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK=content "${CCACHE_PROGRAM}")
  endforeach()
endif()

# zig takes -O3 for -O2, and keeps frame pointers.
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE_INIT "-fomit-frame-pointer -Xclang -O3")
endforeach()
# Its x86-64-v2 is tuned for the processors of 2009, which loaded 32 bytes in two halves; code for AVX2 would, too.
set(POLYOP_HWY_BASELINE "x86_64_v2-slow_unaligned_mem_32-false_deps_popcnt-slow_3ops_lea")

set(CMAKE_FIND_ROOT_PATH "${portable}/prefix")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()

# Libraries end their static objects themselves (cmake/library.cc.in), and call glibc's memcpy (cmake/portable/memory.c).
set(POLYOP_BY_ZIG ON)
