#!/usr/bin/env bash
# setup_free_threaded.sh   compiles a Python without the GIL into .deps/python-free-threaded, from the source of Debian
# 13 or of this newer system, for the test of the portable wheel in it. No distribution's package has one.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
tools/setup_system.sh libffi-dev libssl-dev zlib1g-dev
source tools/apt.sh

PYTHON="$DEPS/python-free-threaded"
RELEASE=3.13
compile() {
  local source="$APT_DIR/source" tree="$APT_DIR/build"
  fetch_source "python$RELEASE" "$source" && mkdir -p "$tree" || return
  (cd "$tree" && "$source/configure" -q --disable-gil --prefix="$PYTHON" CFLAGS="-O1 -g0" 2>/dev/null &&
    make -s -j "$CMAKE_BUILD_PARALLEL_LEVEL" >/dev/null 2>&1 && make -s install >/dev/null 2>&1)
}
if [ ! -x "$PYTHON/bin/python${RELEASE}t" ]; then
  rm -rf "$PYTHON"
  open_archive newer deb-src
  step "Compiling Python $RELEASE without the GIL" compile
fi
