#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_aarch64.sh   compiles operators, the ONNX Runtime library and the program for aarch64 and tests them under qemu:
# C++ tests, and every node's results against this processor's. POLYOP_OPS selects the operators; 'all' takes hours.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
export POLYOP_OPS="${POLYOP_OPS:-my_add;nms;roi_align;grid_sampler;knn_query;dynamic_resize}"
tools/setup.sh
tools/build.sh release
tools/setup_portable.sh aarch64
tools/setup_aarch64.sh
unset CC CXX # the toolchain file sets them

TREE="build/portable/aarch64/tests"
tests=()
for file in ops/*/*/*_test.cc; do
  operator="$(basename "$(dirname "$file")")"
  [[ "$POLYOP_OPS" != all && ";$POLYOP_OPS;" != *";$operator;"* ]] || tests+=("$(basename "$file" .cc)")
done

configure() {
  cmake -S . -B "$TREE" -G Ninja --log-level=NOTICE -DCMAKE_TOOLCHAIN_FILE="$ROOT/cmake/toolchains/aarch64.cmake" \
    -DCMAKE_CROSSCOMPILING_EMULATOR="$DEPS/qemu/qemu-aarch64;-L;$DEPS/aarch64" -DPOLYOP_OPS="$POLYOP_OPS" \
    -DPOLYOP_BUILD_TENSORRT=OFF -DPOLYOP_BUILD_TORCH=OFF -DPOLYOP_BUILD_OPENVINO=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
}
step "Configuring for aarch64" configure
step "Compiling for aarch64" cmake --build "$TREE" --target polyop_onnxruntime polyop "${tests[@]}"
step "Running C++ tests under qemu" ctest --test-dir "$TREE" --output-on-failure --no-tests=error -R "^($(IFS='|' && echo "${tests[*]}"))$"
step "Running ONNX Runtime and the program under qemu" python -m pytest tests/runtimes/on_aarch64.py -q
