#!/usr/bin/env bash
# test_musl.sh   compiles the ONNX Runtime library for musl, and runs a C program that calls it by musl's loader. ONNX
# Runtime itself has no build for musl in its wheels. POLYOP_OPS selects the operators; nms must be one of them.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
export POLYOP_OPS="${POLYOP_OPS:-my_add;nms}"
tools/setup.sh
tools/setup_portable.sh musl
tools/setup_system.sh musl
unset CC CXX # the toolchain file sets them

TREE="build/portable/musl/tests"
configure() {
  cmake -S . -B "$TREE" -G Ninja --log-level=NOTICE -DCMAKE_TOOLCHAIN_FILE="$ROOT/cmake/toolchains/musl.cmake" \
    -DPOLYOP_OPS="$POLYOP_OPS" -DPOLYOP_BUILD_CLI=OFF -DPOLYOP_BUILD_TESTS=OFF -DPOLYOP_BUILD_TENSORRT=OFF \
    -DPOLYOP_BUILD_TORCH=OFF -DPOLYOP_BUILD_OPENVINO=OFF -DPOLYOP_BUILD_JAX=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
}
step "Configuring for musl" configure
step "Compiling for musl" cmake --build "$TREE" --target polyop_onnxruntime
step "Running the library" python -m pytest tests/runtimes/on_musl.py -q
