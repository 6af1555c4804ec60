#!/usr/bin/env bash
# wheels.sh [ARCHITECTURE…]   builds portable wheels into dist/ for the architectures (default: x86_64 and aarch64).
# They serve every Linux with glibc 2.28 or newer and every Python 3. POLYOP_OPS selects fewer operators, for a trial.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept any -- "$@"
for arch in "$@"; do one_of "$arch" x86_64 aarch64; done
[ $# -gt 0 ] || set -- x86_64 aarch64
tools/setup.sh
PATH="$VENV/bin:$PATH"
tools/setup_portable.sh "$@"
unset CC CXX # the toolchain file sets them

MAX_SIZE=25 # MB

build_wheel() {
  _PYTHON_HOST_PLATFORM="linux-$arch" python -m pip wheel --no-deps --no-build-isolation -w "$tree/raw" . \
    -Cbuild-dir="$tree/polyop" -Ccmake.define.CMAKE_TOOLCHAIN_FILE="$ROOT/cmake/toolchains/$arch.cmake" \
    -Ccmake.define.POLYOP_OPS="${POLYOP_OPS:-all}" -Ccmake.define.POLYOP_BUILD_OPENVINO=OFF \
    -Ccmake.define.POLYOP_BUILD_TENSORRT=OFF -Ccmake.define.CMAKE_DISABLE_PRECOMPILE_HEADERS=ON
}

check_notices() { python tools/check_notices.py "$tree/polyop"; }

# auditwheel has tagged the wheel for the oldest glibc that has all its symbols.
take_wheel() {
  local wheel
  wheel="$(echo "$tree"/audited/polyop-*.whl)"
  [[ "$wheel" =~ manylinux_2_([0-9]+)_$arch ]] && [ "${BASH_REMATCH[1]}" -le 28 ] || die "$wheel: expected a tag of at most manylinux_2_28"
  [ "$(stat -c %s "$wheel")" -le $((MAX_SIZE * 1000000)) ] || die "$wheel: expected at most $MAX_SIZE MB, got $(stat -c %s "$wheel") bytes"
  mkdir -p dist
  rm -f dist/polyop-*manylinux*_"$arch".whl
  cp "$wheel" dist/
}

for arch in "$@"; do
  tree="$ROOT/build/portable/$arch"
  rm -rf "$tree/raw" "$tree/audited"
  step "Building a wheel for $arch" build_wheel
  step "Auditing the wheel" audit_wheel "$tree"
  step "Checking the notices" check_notices
  take_wheel
done
ls -l dist/*manylinux*.whl
