#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wheels.sh [TARGET…]   builds portable wheels into dist/ for the targets x86_64, aarch64, windows and macos (default:
# these), and windows-arm64. They serve every Python 3, and every Linux with glibc 2.28 or newer; or Windows on x86-64;
# or, without the program, macOS 12 on arm64, and Windows on Arm with ONNX Runtime alone. POLYOP_OPS selects fewer
# operators, for a trial.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept any -- "$@"
for target in "$@"; do one_of "$target" x86_64 aarch64 windows macos windows-arm64; done
[ $# -gt 0 ] || set -- x86_64 aarch64 windows macos
tools/setup.sh
PATH="$VENV/bin:$PATH"
tools/setup_portable.sh "$@"
unset CC CXX # the toolchain file sets them

MAX_SIZE=60 # MB; more than that would be debug information or a build of another kind

# OpenVINO's C++ runtime is GCC's, that of the other libraries their own: every object is compiled a second time.
build_openvino_library() {
  cmake -S . -B "$tree/openvino" -G Ninja --log-level=ERROR -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_TOOLCHAIN_FILE="$ROOT/cmake/toolchains/$target-openvino.cmake" -DPOLYOP_OPS="${POLYOP_OPS:-all}" \
    -DPOLYOP_BUILD_CLI=OFF -DPOLYOP_BUILD_TESTS=OFF -DPOLYOP_BUILD_ONNXRUNTIME=OFF -DPOLYOP_BUILD_TORCH=OFF \
    -DPOLYOP_BUILD_TENSORRT=OFF -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON &&
    cmake --build "$tree/openvino" --target polyop_openvino
}

# build_wheel PLATFORM [OPTION…]
build_wheel() {
  local platform="$1"
  shift
  _PYTHON_HOST_PLATFORM="$platform" python -m pip wheel -v --no-deps --no-build-isolation -w "$tree/raw" . \
    -Cbuild-dir="$tree/polyop" -Ccmake.define.CMAKE_TOOLCHAIN_FILE="$ROOT/cmake/toolchains/$target.cmake" \
    -Ccmake.define.POLYOP_OPS="${POLYOP_OPS:-all}" -Ccmake.define.POLYOP_BUILD_OPENVINO=OFF \
    -Ccmake.define.POLYOP_BUILD_TENSORRT=OFF -Ccmake.define.POLYOP_BUILD_EXECUTORCH=OFF \
    -Ccmake.define.POLYOP_BUILD_TVM_FFI=OFF -Ccmake.define.CMAKE_DISABLE_PRECOMPILE_HEADERS=ON "$@"
}

check_notices() { python tools/check_notices.py "$tree/polyop"; }

# take_wheel FILE PATTERN   copies a wheel into dist/ and removes others of its kind there.
take_wheel() {
  local wheel="$1"
  [ "$(stat -c %s "$wheel")" -le $((MAX_SIZE * 1000000)) ] || die "$wheel: expected at most $MAX_SIZE MB, got $(stat -c %s "$wheel") bytes"
  mkdir -p dist
  find dist -name "$2" -delete
  cp "$wheel" dist/
}

for target in "$@"; do
  tree="$ROOT/build/portable/$target"
  rm -rf "$tree/raw" "$tree/audited"
  torch=ON
  case "$target" in
    windows) platform=win-amd64 tag=win_amd64 cli=ON ;; # tests/windows/on_windows.py audits its DLLs
    windows-arm64) platform=win-arm64 tag=win_arm64 cli=OFF torch=OFF ;;
    macos) platform=macosx-12.0-arm64 tag=macosx_12_0_arm64 cli=OFF ;;
    *) platform='' ;;
  esac
  if [ -n "$platform" ]; then
    step "Building a wheel for $target" build_wheel "$platform" -Ccmake.define.POLYOP_BUILD_CLI="$cli" \
      -Ccmake.define.POLYOP_BUILD_TORCH="$torch" -Ccmake.define.POLYOP_BUILD_JAX=OFF
    take_wheel "$(echo "$tree"/raw/polyop-*-"$tag".whl)" "polyop-*-$tag.whl"
    continue
  fi
  step "Building OpenVINO's library for $target" build_openvino_library
  step "Building a wheel for $target" build_wheel "linux-$target" \
    -Ccmake.define.POLYOP_OPENVINO_LIBRARY="$tree/openvino/lib/libpolyop_openvino.so"
  step "Auditing the wheel" audit_wheel "$tree"
  step "Checking the notices" check_notices
  # auditwheel has tagged the wheel for the oldest glibc and libstdc++ that have all its symbols.
  wheel="$(echo "$tree"/audited/polyop-*.whl)"
  [[ "$wheel" =~ manylinux_2_([0-9]+)_$target ]] && [ "${BASH_REMATCH[1]}" -le 28 ] || die "$wheel: expected a tag of at most manylinux_2_28"
  take_wheel "$wheel" "polyop-*manylinux*_$target.whl"
done
ls -l dist/*.whl
