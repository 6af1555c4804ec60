#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_windows.sh   compiles the libraries, the program and C++ tests for Windows and tests them under wine: the
# imports and exports of the DLLs, every node in an old and the newest ONNX Runtime against this machine's results,
# the registration of all operators in an old and the newest PyTorch, the commands of the program, and the C++ tests
# of core, kernels, rooms and operators. POLYOP_OPS selects the operators (default: all; without their C++ tests,
# which would take hours).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
export POLYOP_OPS="${POLYOP_OPS:-all}"
tools/setup.sh
tools/build.sh release polyop polyop_onnxruntime
tools/setup_portable.sh windows
tools/setup_windows.sh
unset CC CXX # the toolchain file sets them
PATH="$VENV/bin:$PATH"

TREE="build/portable/windows/tests"
tests=()
for file in core/*_test.cc kernels/*/*_test.cc ops/*/*/*_test.cc; do tests+=("$(basename "$file" .cc)"); done
if [ "$POLYOP_OPS" != all ]; then
  for name in ${POLYOP_OPS//;/ }; do
    for file in ops/*/"$name"/*_test.cc; do tests+=("$(basename "$file" .cc)"); done
  done
fi
export POLYOP_TESTS="${tests[*]}"
configure() {
  cmake -S . -B "$TREE" -G Ninja --log-level=NOTICE -Wno-dev -DCMAKE_TOOLCHAIN_FILE="$ROOT/cmake/toolchains/windows.cmake" \
    -DPOLYOP_OPS="$POLYOP_OPS" -DPOLYOP_BUILD_TENSORRT=OFF -DPOLYOP_BUILD_OPENVINO=OFF \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
}
compile_runners() {
  local torch="$DEPS/windows/torch-newest/torch" zig="build/portable/windows/zig"
  "$zig/zig-rc" /fo "$TREE/program.res" platform/windows/program.rc &&
    "$zig/zig-c++" -std=c++20 -I. -DORT_API_MANUAL_INIT "-D_Return_type_success_(x)=" -isystem "$DEPS/onnxruntime/include" \
      tests/windows/run_models.cc platform/windows/library.cc "$TREE/program.res" -o "$TREE/bin/run_models.exe" &&
    "$zig/zig-c++" -std=c++20 -municode -w -DTORCH_TARGET_VERSION=0x020a000000000000 -DTORCH_STABLE_ONLY \
      -isystem "$(python -c 'import torch; print(torch.__path__[0])')/include" tests/windows/run_torch.cc \
      "$torch/lib/torch_cpu.lib" -o "$TREE/bin/run_torch.exe"
}
step "Configuring for Windows" configure
step "Compiling for Windows" cmake --build "$TREE" --target polyop polyop_onnxruntime polyop_accelerator polyop_torch "${tests[@]}"
step "Compiling the programs that run models" compile_runners
step "Running ONNX Runtime, PyTorch, the program and C++ tests under wine" python -m pytest tests/windows/on_windows.py -q
