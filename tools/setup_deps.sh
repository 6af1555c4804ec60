#!/usr/bin/env bash
# Puts what is too old or missing in stable distributions into .deps/, without touching the system:
#   .deps/highway       source of Google Highway >= 1.2 (built here as a static library)
#   .deps/onnxruntime   headers of ONNX Runtime (polyop loads the runtime, it never links it)
# Both come through apt from the distribution's own signed archive: on Debian from the suite that has
# them, on Ubuntu from the machine's own. POLYOP_HIGHWAY_ROOT and ONNXRUNTIME_ROOT come first.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
source tools/apt.sh

HIGHWAY_AT_LEAST=1.2.0
ONNXRUNTIME_AT_LEAST=1.17

get_highway() {
  local version
  version="$(newest source highway)"
  at_least "$version" "$HIGHWAY_AT_LEAST" || die "$OS offers Highway ${version:-nothing}, polyop needs \
$HIGHWAY_AT_LEAST or newer.
       Unpack a source release of google/highway and set POLYOP_HIGHWAY_ROOT to its folder."
  fetch_source highway "$DEPS/highway"
  [ -f "$DEPS/highway/hwy/highway.h" ] && say "    Highway $version in .deps/highway"
}

get_onnxruntime() {
  local version
  version="$(newest package libonnxruntime-dev)"
  at_least "$version" "$ONNXRUNTIME_AT_LEAST" || die "$OS offers no headers of ONNX Runtime >= $ONNXRUNTIME_AT_LEAST.
       Unpack a C++ release of onnxruntime and set ONNXRUNTIME_ROOT to the folder that holds include/."
  (cd "$APT_DIR/download" && private_apt apt-get download libonnxruntime-dev >/dev/null)
  rm -rf "$DEPS/onnxruntime" && mkdir -p "$DEPS/onnxruntime"
  dpkg-deb --fsys-tarfile "$APT_DIR"/download/libonnxruntime-dev_*.deb |
    tar -x -C "$DEPS/onnxruntime" --strip-components=3 ./usr/include/onnxruntime
  mv "$DEPS/onnxruntime/onnxruntime" "$DEPS/onnxruntime/include"
  [ -f "$DEPS/onnxruntime/include/onnxruntime_c_api.h" ] && say "    ONNX Runtime $version headers in .deps/onnxruntime"
}

wanted=()
if [ -z "${POLYOP_HIGHWAY_ROOT:-}" ] && [ ! -f "$DEPS/highway/hwy/highway.h" ]; then wanted+=(highway); fi
if [ -z "${ONNXRUNTIME_ROOT:-}" ] && [ ! -f "$DEPS/onnxruntime/include/onnxruntime_c_api.h" ]; then wanted+=(onnxruntime); fi
if [ ${#wanted[@]} -eq 0 ]; then exit 0; fi

ADVICE="Set POLYOP_HIGHWAY_ROOT (sources of google/highway >= $HIGHWAY_AT_LEAST) and ONNXRUNTIME_ROOT (a release of \
onnxruntime with include/)."
open_archive newer "deb deb-src"
for what in "${wanted[@]}"; do step "Fetching $what" "get_$what"; done
