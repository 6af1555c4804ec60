#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_systems.sh [SYSTEM…]   compiles the ONNX Runtime library for systems for which ONNX Runtime has no wheels, and
# tests it without ONNX Runtime: a C program calls the library for musl by musl's loader, and that for riscv64 under
# qemu. For Windows on Arm it reads the library only. POLYOP_OPS selects the operators; nms must be one of them.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept any -- "$@"
for system in "$@"; do one_of "$system" musl riscv64 windows-arm64; done
[ $# -gt 0 ] || set -- musl riscv64 windows-arm64
export POLYOP_OPS="${POLYOP_OPS:-my_add;nms}"
tools/setup.sh
tools/setup_portable.sh "$@"
packages=()
[[ " $* " != *" musl "* ]] || packages+=(musl)
[[ " $* " != *" riscv64 "* ]] || packages+=(qemu-user libc6-riscv64-cross)
[ ${#packages[@]} -eq 0 ] || tools/setup_system.sh "${packages[@]}"
unset CC CXX # the toolchain file sets them

configure() {
  cmake -S . -B "$TREE" -G Ninja --log-level=NOTICE -DCMAKE_TOOLCHAIN_FILE="$ROOT/cmake/toolchains/$1.cmake" \
    -DPOLYOP_OPS="$POLYOP_OPS" -DPOLYOP_BUILD_CLI=OFF -DPOLYOP_BUILD_TESTS=OFF -DPOLYOP_BUILD_TENSORRT=OFF \
    -DPOLYOP_BUILD_TORCH=OFF -DPOLYOP_BUILD_OPENVINO=OFF -DPOLYOP_BUILD_JAX=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
}
for system in "$@"; do
  TREE="build/portable/$system/tests"
  step "Configuring for $system" configure "$system"
  step "Compiling for $system" cmake --build "$TREE" --target polyop_onnxruntime
done
step "Testing the libraries" env POLYOP_SYSTEMS="$*" python -m pytest tests/runtimes/on_systems.py -q
