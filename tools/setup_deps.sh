#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup_deps.sh   installs into .deps/ what stable distributions lack or have too old, without changing the system:
#   .deps/highway       source of Google Highway >= 1.2 (built as a static library)
#   .deps/onnxruntime   headers of ONNX Runtime (polyop loads the runtime and never links it)
#   .deps/pocketfft     the header of pocketfft, which is part of the package of gemmi's headers
# apt fetches them from the distribution's signed archive: on Debian from a suite that has them, on Ubuntu from the
# machine's own. POLYOP_HIGHWAY_ROOT, ONNXRUNTIME_ROOT and POLYOP_POCKETFFT_ROOT, if set, are used instead.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
source tools/apt.sh

MIN_HIGHWAY=1.2.0
MIN_ONNXRUNTIME=1.17

get_highway() {
  local version
  version="$(newest source highway)"
  at_least "$version" "$MIN_HIGHWAY" || die "Highway: expected $MIN_HIGHWAY or newer, got ${version:-none} from $OS.
       Unpack a source release of google/highway and set POLYOP_HIGHWAY_ROOT to its folder."
  fetch_source highway "$DEPS/highway"
  [ -f "$DEPS/highway/hwy/highway.h" ] && say "    Highway $version in .deps/highway"
}

get_onnxruntime() {
  local version
  version="$(newest package libonnxruntime-dev)"
  at_least "$version" "$MIN_ONNXRUNTIME" || die "headers of ONNX Runtime: expected $MIN_ONNXRUNTIME or newer, got ${version:-none} from $OS.
       Unpack a C++ release of onnxruntime and set ONNXRUNTIME_ROOT to the folder that has include/."
  (cd "$APT_DIR/download" && private_apt apt-get download libonnxruntime-dev >/dev/null)
  rm -rf "$DEPS/onnxruntime" && mkdir -p "$DEPS/onnxruntime"
  dpkg-deb --fsys-tarfile "$APT_DIR"/download/libonnxruntime-dev_*.deb |
    tar -x -C "$DEPS/onnxruntime" --strip-components=3 ./usr/include/onnxruntime
  mv "$DEPS/onnxruntime/onnxruntime" "$DEPS/onnxruntime/include"
  [ -f "$DEPS/onnxruntime/include/onnxruntime_c_api.h" ] && say "    ONNX Runtime $version headers in .deps/onnxruntime"
}

get_pocketfft() {
  local version file=usr/include/gemmi/third_party/pocketfft_hdronly.h
  version="$(newest package gemmi-dev)"
  [ -n "$version" ] || die "pocketfft: expected a package gemmi-dev, got none from $OS.
       Unpack mreineck/pocketfft (branch cpp) and set POLYOP_POCKETFFT_ROOT to its folder."
  (cd "$APT_DIR/download" && private_apt apt-get download gemmi-dev >/dev/null)
  rm -rf "$DEPS/pocketfft" && mkdir -p "$DEPS/pocketfft"
  dpkg-deb --fsys-tarfile "$APT_DIR"/download/gemmi-dev_*.deb | tar -x -O "./$file" >"$DEPS/pocketfft/new"
  mv "$DEPS/pocketfft/new" "$DEPS/pocketfft/pocketfft_hdronly.h"
  say "    pocketfft of gemmi-dev $version in .deps/pocketfft"
}

missing=()
if [ -z "${POLYOP_HIGHWAY_ROOT:-}" ] && [ ! -f "$DEPS/highway/hwy/highway.h" ]; then missing+=(highway); fi
if [ -z "${ONNXRUNTIME_ROOT:-}" ] && [ ! -f "$DEPS/onnxruntime/include/onnxruntime_c_api.h" ]; then missing+=(onnxruntime); fi
if [ -z "${POLYOP_POCKETFFT_ROOT:-}" ] && [ ! -f "$DEPS/pocketfft/pocketfft_hdronly.h" ]; then missing+=(pocketfft); fi
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

ADVICE="Set POLYOP_HIGHWAY_ROOT (sources of google/highway >= $MIN_HIGHWAY), ONNXRUNTIME_ROOT (a release of \
onnxruntime with include/) and POLYOP_POCKETFFT_ROOT (the folder of pocketfft_hdronly.h)."
open_archive newer "deb deb-src"
for name in "${missing[@]}"; do step "Fetching $name" "get_$name"; done
