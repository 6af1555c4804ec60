#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup_portable.sh [TARGET…]   installs zig and auditwheel, and compiles the libraries that the program links for each
# target (x86_64, aarch64, windows) into build/portable/TARGET/prefix, where cmake/toolchains/TARGET.cmake expects them.
# For the others, which have no program (macos, musl, riscv64, windows-arm64), these are headers.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept any -- "$@"
for target in "$@"; do one_of "$target" x86_64 aarch64 windows macos musl riscv64 windows-arm64; done
unset CC CXX # the toolchain file sets them

install_tools() {
  rm -rf "$DEPS/wheel-tools"
  python -m pip --disable-pip-version-check install -q --no-deps --no-compile --target "$DEPS/wheel-tools" -r requirements/wheels.txt
}

# Header-only libraries are copied from this system. GoogleTest is compiled from this system's source.
copy_headers() {
  local file
  dpkg-query -L nlohmann-json3-dev libcli11-dev | grep -E '/(include|cmake)/' | while read -r file; do
    [ -d "$file" ] || install -D -m 644 "$file" "$PREFIX$file"
  done
}

# library NAME SOURCE [OPTION…]   configures, builds and installs a third-party library
library() {
  local tree="$PORTABLE/$1" source="$2"
  shift 2
  cmake -S "$source" -B "$tree" -G Ninja --log-level=NOTICE -DCMAKE_TOOLCHAIN_FILE="$ROOT/cmake/toolchains/$ARCH.cmake" \
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$PREFIX/usr" \
    -DCMAKE_INSTALL_LIBDIR:STRING=lib -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DCMAKE_C_FLAGS=-w -DCMAKE_CXX_FLAGS=-w "$@" &&
    cmake --build "$tree" && cmake --install "$tree" >/dev/null
}

build_libraries() {
  PORTABLE="$ROOT/build/portable/$ARCH"
  PREFIX="$PORTABLE/prefix"
  rm -rf "$PORTABLE" && mkdir -p "$PREFIX" # a configured tree would keep old flags
  copy_headers
  case "$ARCH" in macos | musl | riscv64 | windows-arm64) return 0 ;; esac
  library small cmake/portable -DPOLYOP_SOURCES="$DEPS/sources" &&
    library turbojpeg "$DEPS/sources/libjpeg-turbo" -DENABLE_SHARED=OFF &&
    library protobuf "$DEPS/sources/protobuf" -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_BUILD_PROTOC_BINARIES=OFF -Dprotobuf_WITH_ZLIB=OFF &&
    library googletest /usr/src/googletest -DBUILD_GMOCK=OFF
}

# Headers of GCC's C++ library for aarch64, which OpenVINO uses; those of this processor belong to g++.
get_libstdcxx() {
  local folder="$DEPS/libstdcxx/aarch64" gcc package
  gcc="$(gcc -dumpversion | cut -d. -f1)"
  (cd "$APT_DIR/download" &&
    private_apt apt-get download "libstdc++-$gcc-dev-arm64-cross" libstdc++6-arm64-cross libgcc-s1-arm64-cross >/dev/null) || return
  rm -rf "$folder" && mkdir -p "$folder"
  for package in "$APT_DIR"/download/*-arm64-cross_*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -C "$folder"; done
}

stamp_is "$DEPS/wheel-tools/.stamp" requirements/wheels.txt || step "Installing zig and auditwheel" install_tools
stamp_write "$DEPS/wheel-tools/.stamp" requirements/wheels.txt
[ $# -eq 0 ] || tools/setup_sources.sh
if [[ " $* " = *" aarch64 "* ]] && [ ! -d "$DEPS/libstdcxx/aarch64" ]; then
  source tools/apt.sh
  (open_archive own deb && step "Fetching GCC's C++ library for aarch64" get_libstdcxx)
fi
for ARCH in "$@"; do
  stamp="build/portable/$ARCH/.stamp"
  inputs=(requirements/wheels.txt "$0" cmake/portable/CMakeLists.txt cmake/toolchains/*.cmake "$DEPS"/sources/*)
  stamp_is "$stamp" "${inputs[@]}" && continue
  step "Preparing protobuf, zlib, minizip, libpng, libjpeg-turbo and GoogleTest for $ARCH" build_libraries
  stamp_write "$stamp" "${inputs[@]}"
done
