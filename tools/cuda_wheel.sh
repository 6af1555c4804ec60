#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cuda_wheel.sh [FOLDER]   builds the wheel polyop-cuda12 or polyop-cuda13 (nvcc's major version) into FOLDER (default:
# dist). It holds polyop's libraries with CUDA kernels for every GPU since Turing. The package polyop loads them instead
# of those in polyop. nvcc compiles with this system's GCC, so the wheel needs this system's glibc or a newer one.
# CUDAARCHS selects fewer GPUs, POLYOP_OPS fewer operators.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 1 -- "$@"
has_cuda || die "nvcc was not found: install CUDA 12.8 or newer, or set CUDA_HOME to its folder"
tools/setup.sh
PATH="$VENV/bin:$PATH"
tools/setup_portable.sh # auditwheel
TREE="$ROOT/build/cuda-wheel" OUT="${1:-dist}"
CUDA="$(nvcc --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')"
VERSION="$(polyop_version)"

write_project() {
  rm -rf "$TREE/project" "$TREE/raw" "$TREE/audited"
  mkdir -p "$TREE/project/polyop_cuda$CUDA"
  sed "s|@CUDA@|$CUDA|; s|@VERSION@|$VERSION|; s|@ROOT@|$ROOT|" tools/cuda_wheel/pyproject.toml.in >"$TREE/project/pyproject.toml"
  cp tools/cuda_wheel/__init__.py "$TREE/project/polyop_cuda$CUDA/"
  cp LICENSE THIRD_PARTY_LICENSES "$TREE/project/"
}
build_wheel() {
  python -m pip wheel -v --no-deps --no-build-isolation -w "$TREE/raw" "$TREE/project" -Cbuild-dir="$TREE/polyop" \
    -Ccmake.define.POLYOP_OPS="${POLYOP_OPS:-all}"
}
check_notices() { python tools/check_notices.py "$TREE/polyop"; }

write_project
step "Building a wheel of polyop-cuda$CUDA" build_wheel
step "Auditing the wheel" audit_wheel "$TREE"
step "Checking the notices" check_notices
mkdir -p "$OUT"
rm -f "$OUT/polyop_cuda$CUDA"-*.whl
cp "$TREE"/audited/*.whl "$OUT"
ls -l "$OUT/polyop_cuda$CUDA"-*.whl
