#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup_sources.sh   fetches the sources of the libraries that the program links into .deps/sources/, with this
# distribution's patches. They belong to the packages that tools/setup_system.sh installs. Portable wheels compile them
# (cmake/portable/).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
source tools/apt.sh

SOURCES="$DEPS/sources"
NAMES=(zlib minizip libpng1.6 libjpeg-turbo protobuf)
get_source() {
  fetch_source "$1" "$SOURCES/$1.part" && patch_source "$1" "$SOURCES/$1.part" && mv "$SOURCES/$1.part" "$SOURCES/$1"
}

missing=()
for name in "${NAMES[@]}"; do [ -d "$SOURCES/$name" ] || missing+=("$name"); done
[ ${#missing[@]} -gt 0 ] || exit 0
open_archive own deb-src
for name in "${missing[@]}"; do step "Fetching the source of $name" get_source "$name"; done
