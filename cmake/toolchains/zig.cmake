# SPDX-License-Identifier: Apache-2.0
# The toolchain of wheels: zig's clang with a static C++ runtime. On Linux with symbols of glibc 2.28, for every
# distribution since 2018, or for musl; on Windows with MinGW's headers, where libraries need the system's own DLLs
# only; on macOS for version 12. Requires: POLYOP_TARGET is the name of the toolchain file, POLYOP_PROCESSOR and
# POLYOP_SYSTEM (Linux, Windows or Darwin) what it compiles for, and POLYOP_LIBC is "musl" or not set.
# tools/setup_portable.sh installs zig and the libraries for the target.
#
# With POLYOP_LIBSTDCXX, for the library that OpenVINO loads, the C++ runtime is GCC's shared one, because OpenVINO's
# strings and exceptions are of it. The headers are those of this system's GCC; cmake/portable/libstdcxx.cc replaces the
# functions that older releases lack.
set(CMAKE_SYSTEM_NAME "${POLYOP_SYSTEM}")
set(CMAKE_SYSTEM_PROCESSOR "${POLYOP_PROCESSOR}")
if(POLYOP_SYSTEM STREQUAL "Windows")
  set(zig_target "${POLYOP_PROCESSOR}-windows-gnu")
elseif(POLYOP_SYSTEM STREQUAL "Darwin")
  set(zig_target "${POLYOP_PROCESSOR}-macos.12.0")
elseif(POLYOP_WASM)
  # zig's C++ library for it has no exceptions (platform/wasm/exceptions.cc). The same objects are linked with and
  # without shared memory, for several threads, which needs atomic instructions (adapters/wasm/).
  set(zig_target "${POLYOP_PROCESSOR}-wasi -msimd128 -matomics -mbulk-memory -fignore-exceptions")
elseif(POLYOP_LIBC STREQUAL "musl")
  set(zig_target "${POLYOP_PROCESSOR}-linux-musl")
else()
  set(zig_target "${POLYOP_PROCESSOR}-linux-gnu.2.28")
endif()
cmake_path(SET root NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../..")
set(portable "${root}build/portable/${POLYOP_TARGET}")

# CMake and ccache need separate programs. Without -fno-sanitize, zig adds checks to unoptimised code. zig compiles its
# C++ runtime for each optimisation and debug level, so release options come first, also for CMake's checks. The linker
# strips, because this machine's strip may support only this machine's processor.
set(zig "${portable}/zig")
set(libstdcxx "")
if(POLYOP_LIBSTDCXX)
  string(APPEND zig "-libstdcxx")
  set(gcc_root "/usr")
  set(gcc_triple "${POLYOP_PROCESSOR}-linux-gnu")
  if(NOT POLYOP_PROCESSOR STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
    set(gcc_root "${root}.deps/libstdcxx/${POLYOP_PROCESSOR}/usr/${gcc_triple}")
  endif()
  file(GLOB gcc_headers "${gcc_root}/include/c++/*")
  list(SORT gcc_headers COMPARE NATURAL)
  list(GET gcc_headers -1 gcc_newest)
  cmake_path(GET gcc_newest FILENAME gcc_version)
  # Not -isystem: zig's own system headers, which libstdc++'s include, would precede them.
  set(libstdcxx "-I'${root}cmake/portable/libstdcxx' -I'${gcc_newest}' --system-header-prefix=bits/")
  foreach(folder IN ITEMS "${gcc_root}/include/${gcc_triple}/c++/${gcc_version}" "${gcc_newest}/${gcc_triple}")
    if(EXISTS "${folder}/bits/c++config.h")
      string(APPEND libstdcxx " -I'${folder}'")
    endif()
  endforeach()
  find_file(POLYOP_LIBSTDCXX_FILE libstdc++.so.6 PATHS "${gcc_root}/lib/${gcc_triple}" "${gcc_root}/lib"
    NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  find_file(POLYOP_LIBGCC_FILE libgcc_s.so.1 PATHS "/lib/${gcc_triple}" "${gcc_root}/lib"
    NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  set(CMAKE_CXX_STANDARD_LIBRARIES "${POLYOP_LIBSTDCXX_FILE} ${POLYOP_LIBGCC_FILE}")
  set(CMAKE_EXE_LINKER_FLAGS_INIT -Wl,--allow-shlib-undefined) # both need this system's newer glibc
endif()
foreach(tool IN ITEMS cc c++ ar ranlib rc dlltool)
  set(command ${tool})
  set(options "")
  if(tool MATCHES "^c")
    set(options "-target ${zig_target} -O3 -g0 -s -fno-sanitize=undefined")
  endif()
  if(tool STREQUAL "c++" AND POLYOP_LIBSTDCXX)
    set(command cc) # without libc++
    string(APPEND options " ${libstdcxx}")
  endif()
  file(CONFIGURE OUTPUT "${zig}/zig-${tool}" CONTENT "#!/bin/sh
export ZIG_LOCAL_CACHE_DIR='${root}build/portable/zig-cache' ZIG_GLOBAL_CACHE_DIR='${root}build/portable/zig-cache'
exec '${root}.deps/wheel-tools/ziglang/zig' ${command} ${options} \"$@\"
")
  file(CHMOD "${zig}/zig-${tool}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
set(CMAKE_C_COMPILER "${zig}/zig-cc")
set(CMAKE_CXX_COMPILER "${zig}/zig-c++")
set(CMAKE_AR "${zig}/zig-ar")
set(CMAKE_RANLIB "${zig}/zig-ranlib")
if(POLYOP_SYSTEM STREQUAL "Windows")
  set(CMAKE_RC_COMPILER "${zig}/zig-rc")
  set(CMAKE_DLLTOOL "${zig}/zig-dlltool")
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
list(APPEND CMAKE_PREFIX_PATH /usr) # CMake does not search it for Windows
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind IN ITEMS LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()

# Libraries destroy their static objects (cmake/library.cc.in) and call glibc's memcpy (cmake/portable/memory.c).
set(POLYOP_BY_ZIG ON)
