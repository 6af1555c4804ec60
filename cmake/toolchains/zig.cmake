# The toolchain of wheels: zig's clang with a static C++ runtime. On Linux with symbols of glibc 2.28, for every
# distribution since 2018; on Windows with MinGW's headers, where libraries need the system's own DLLs only; on macOS
# for version 12. Requires: POLYOP_TARGET is the name of the toolchain file, POLYOP_PROCESSOR and POLYOP_SYSTEM (Linux,
# Windows or Darwin) what it compiles for. tools/setup_portable.sh installs zig and the libraries for the target.
set(CMAKE_SYSTEM_NAME "${POLYOP_SYSTEM}")
set(CMAKE_SYSTEM_PROCESSOR "${POLYOP_PROCESSOR}")
if(POLYOP_SYSTEM STREQUAL "Windows")
  set(zig_target "${POLYOP_PROCESSOR}-windows-gnu")
elseif(POLYOP_SYSTEM STREQUAL "Darwin")
  set(zig_target "${POLYOP_PROCESSOR}-macos.12.0")
else()
  set(zig_target "${POLYOP_PROCESSOR}-linux-gnu.2.28")
endif()
cmake_path(SET root NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../..")
set(portable "${root}build/portable/${POLYOP_TARGET}")

# CMake and ccache need separate programs. Without -fno-sanitize, zig adds checks to unoptimised code. zig compiles its
# C++ runtime for each optimisation and debug level, so release options come first, also for CMake's checks. The linker
# strips, because this machine's strip may support only this machine's processor.
foreach(tool IN ITEMS cc c++ ar ranlib rc dlltool)
  set(options "")
  if(tool MATCHES "^c")
    set(options "-target ${zig_target} -O3 -g0 -s -fno-sanitize=undefined")
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
if(POLYOP_SYSTEM STREQUAL "Windows")
  set(CMAKE_RC_COMPILER "${portable}/zig/zig-rc")
  set(CMAKE_DLLTOOL "${portable}/zig/zig-dlltool")
endif()
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM)
  foreach(language IN ITEMS C CXX)
    set(CMAKE_${language}_COMPILER_LAUNCHER env CCACHE_COMPILERTYPE=clang CCACHE_COMPILERCHECK=content "${CCACHE_PROGRAM}")
  endforeach()
endif()

# zig treats -O3 as -O2 and keeps frame pointers.
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE_INIT "-fomit-frame-pointer -Xclang -O3")
endforeach()
# zig tunes x86-64-v2 for processors of 2009, which load 32 bytes in two halves; AVX2 code would do so too.
set(POLYOP_HWY_BASELINE "x86_64_v2-slow_unaligned_mem_32-false_deps_popcnt-slow_3ops_lea")

set(CMAKE_FIND_ROOT_PATH "${portable}/prefix")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()

# Libraries destroy their static objects (cmake/library.cc.in) and call glibc's memcpy (cmake/portable/memory.c).
set(POLYOP_BY_ZIG ON)
