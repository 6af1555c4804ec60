#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# deb.sh [FOLDER]   builds polyop_VERSION_ARCHITECTURE.deb into FOLDER (default: dist), for systems like this one. It
# installs the program, the library for ONNX Runtime, the accelerator, the SDK and its headers under /usr. POLYOP_OPS
# selects fewer operators, for a trial.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 1 -- "$@"
tools/setup.sh demo
PATH="$VENV/bin:$PATH"
TREE="$ROOT/build/deb" OUT="${1:-dist}"

# The libraries for PyTorch, JAX and OpenVINO are left out: no system package provides these runtimes.
configure() {
  cmake --preset release -B "$TREE" --log-level=NOTICE -DPOLYOP_BUILD_TESTS=OFF -DPOLYOP_BUILD_TORCH=OFF \
    -DPOLYOP_BUILD_OPENVINO=OFF -DPOLYOP_BUILD_JAX=OFF -DPOLYOP_OPS="${POLYOP_OPS:-all}" -DPOLYOP_HWY_TARGETS="AVX2;AVX3"
}
pack() { rm -f "$TREE"/*.deb && (cd "$TREE" && cpack -G DEB >/dev/null); }

# Checks that the package has all files, none outside /usr, and prints its metadata.
check() {
  local contents path
  contents="$(dpkg-deb --contents "$deb" | awk '{ print $6 }')"
  for path in bin/polyop lib/libpolyop_onnxruntime.so lib/libpolyop_accelerator.so include/polyop/onnxruntime.h \
    include/polyop/polyop.h lib/cmake/polyop/polyopConfig.cmake share/polyop/sdk/core/operator.h share/polyop/THIRD_PARTY_LICENSES; do
    grep -qx "\./usr/$path" <<<"$contents" || die "$deb lacks /usr/$path"
  done
  ! grep -vE '^\./(usr/.*)?$' <<<"$contents" || die "$deb has files outside /usr"
  dpkg-deb --info "$deb" | grep -E '^ (Package|Version|Architecture|Depends|Installed-Size):'
}

step "Configuring build/deb" configure
step "Building build/deb" cmake --build "$TREE"
step "Packing" pack
mkdir -p "$OUT"
rm -f "$OUT"/polyop_*.deb
cp "$TREE"/*.deb "$OUT"
deb="$(echo "$OUT"/polyop_*.deb)"
step "Checking the package" check
ls -l "$deb"
