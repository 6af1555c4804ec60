#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup_free_threaded.sh [RELEASE…]   compiles Pythons without the GIL into .deps/python-free-threaded, for the test of
# the portable wheel in them: 3.13 from the source of Debian 13 or of this newer system, and 3.14 from that of Debian's
# unstable (default: both). No distribution's package has one.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 2 -- "$@"
for release in "$@"; do one_of "$release" 3.13 3.14; done
[ $# -gt 0 ] || set -- 3.13 3.14
tools/setup_system.sh libffi-dev libssl-dev zlib1g-dev
source tools/apt.sh

compile() {
  local release="$1" prefix="$2" source="$APT_DIR/source" tree="$APT_DIR/build"
  fetch_source "python$release" "$source" && rm -rf "$tree" && mkdir -p "$tree" || return
  (cd "$tree" && "$source/configure" -q --disable-gil --prefix="$prefix" CFLAGS="-O1 -g0" 2>/dev/null &&
    make -s -j "$CMAKE_BUILD_PARALLEL_LEVEL" >/dev/null 2>&1 && make -s install >/dev/null 2>&1)
}
for release in "$@"; do
  prefix="$DEPS/python-free-threaded/$release"
  [ ! -x "$prefix/bin/python${release}t" ] || continue
  rm -rf "$prefix"
  suite=newer
  [ "$release" = 3.13 ] || suite=unstable
  open_archive "$suite" deb-src
  step "Compiling Python $release without the GIL" compile "$release" "$prefix"
done
