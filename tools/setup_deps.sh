#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup_deps.sh   installs into .deps/ what stable distributions lack or have too old, without changing the system:
#   .deps/highway       source of Google Highway >= 1.2 (built as a static library)
#   .deps/onnxruntime   headers of ONNX Runtime >= 1.24 (polyop loads the runtime and never links it). With older ones,
#                       where the distribution has no newer, the libraries lack the execution provider
#   .deps/pocketfft     the header of pocketfft, which is part of the package of gemmi's headers
# apt fetches them from the distribution's signed archive: on Debian from a suite that has them, on Ubuntu from the
# machine's own. POLYOP_HIGHWAY_ROOT, ONNXRUNTIME_ROOT and POLYOP_POCKETFFT_ROOT, if set, are used instead.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
source tools/apt.sh

MIN_HIGHWAY=1.2.0
MIN_ONNXRUNTIME=1.17
PROVIDER_ONNXRUNTIME=24 # 1.24

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
  open_archive experimental deb
  version="$(newest package libonnxruntime-dev)"
  if ! at_least "$version" "1.$PROVIDER_ONNXRUNTIME"; then
    open_archive newer deb
    version="$(newest package libonnxruntime-dev)"
  fi
  at_least "$version" "$MIN_ONNXRUNTIME" || die "headers of ONNX Runtime: expected $MIN_ONNXRUNTIME or newer, got ${version:-none} from $OS.
       Unpack a C++ release of onnxruntime and set ONNXRUNTIME_ROOT to the folder that has include/."
  (cd "$APT_DIR/download" && private_apt apt-get download libonnxruntime-dev >/dev/null)
  rm -rf "$DEPS/onnxruntime" && mkdir -p "$DEPS/onnxruntime"
  dpkg-deb --fsys-tarfile "$APT_DIR"/download/libonnxruntime-dev_*.deb |
    tar -x -m -C "$DEPS/onnxruntime" --strip-components=3 ./usr/include/onnxruntime # new times: builds see the change
  mv "$DEPS/onnxruntime/onnxruntime" "$DEPS/onnxruntime/include"
  say "    ONNX Runtime $version headers in .deps/onnxruntime"
  [ -f "$DEPS/onnxruntime/include/onnxruntime_c_api.h" ]
}

# Returns true if there are headers with execution providers, or without them on a distribution that has no newer ones.
has_onnxruntime() {
  local version
  version="$(awk '$2 == "ORT_API_VERSION" { print $3 }' "$DEPS/onnxruntime/include/onnxruntime_c_api.h" 2>/dev/null)"
  [ "${version:-0}" -ge "$PROVIDER_ONNXRUNTIME" ] || { [ -n "$version" ] && ! grep -q '^ID=debian$' /etc/os-release; }
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
if [ -z "${POLYOP_POCKETFFT_ROOT:-}" ] && [ ! -f "$DEPS/pocketfft/pocketfft_hdronly.h" ]; then missing+=(pocketfft); fi
# Last, because other suites have it.
if [ -z "${ONNXRUNTIME_ROOT:-}" ] && ! has_onnxruntime; then missing+=(onnxruntime); fi
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

ADVICE="Set POLYOP_HIGHWAY_ROOT (sources of google/highway >= $MIN_HIGHWAY), ONNXRUNTIME_ROOT (a release of \
onnxruntime with include/) and POLYOP_POCKETFFT_ROOT (the folder of pocketfft_hdronly.h)."
[ "${missing[*]}" = onnxruntime ] || open_archive newer "deb deb-src"
for name in "${missing[@]}"; do step "Fetching $name" "get_$name"; done
