#!/usr/bin/env bash
# wheels.sh [ARCHITECTURE…]   portable wheels into dist/, for x86_64 and aarch64 unless said otherwise: for every Linux with
# glibc 2.28 or newer and every Python 3, built on this machine. POLYOP_OPS builds fewer operators, to try it out.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[ $# -gt 0 ] || set -- x86_64 aarch64
tools/setup.sh
PATH="$VENV/bin:$PATH"
tools/setup_portable.sh "$@"
unset CC CXX # the toolchain file names them

LARGEST=25 # MB

build_wheel() {
  _PYTHON_HOST_PLATFORM="linux-$arch" python -m pip wheel --no-deps --no-build-isolation -w "$tree/raw" . \
    -Cbuild-dir="$tree/polyop" -Ccmake.define.CMAKE_TOOLCHAIN_FILE="$ROOT/cmake/toolchains/$arch.cmake" \
    -Ccmake.define.POLYOP_OPS="${POLYOP_OPS:-all}" -Ccmake.define.POLYOP_BUILD_OPENVINO=OFF \
    -Ccmake.define.POLYOP_BUILD_TENSORRT=OFF -Ccmake.define.CMAKE_DISABLE_PRECOMPILE_HEADERS=ON
}

check_notices() { python tools/check_notices.py "$tree/polyop"; }

# Named for the oldest glibc that has all its symbols.
take_wheel() {
  local wheel
  wheel="$(echo "$tree"/audited/polyop-*.whl)"
  [[ "$wheel" =~ manylinux_2_([0-9]+)_$arch ]] && [ "${BASH_REMATCH[1]}" -le 28 ] || die "$wheel needs more than manylinux_2_28"
  [ "$(stat -c %s "$wheel")" -le $((LARGEST * 1000000)) ] || die "$(ls -l "$wheel") has more than $LARGEST MB"
  mkdir -p dist
  rm -f dist/polyop-*manylinux*_"$arch".whl
  cp "$wheel" dist/
}

for arch in "$@"; do
  tree="$ROOT/build/portable/$arch"
  rm -rf "$tree/raw" "$tree/audited"
  step "Building a wheel for $arch" build_wheel
  step "Auditing it" audit_wheel "$tree"
  step "Checking the notices" check_notices
  take_wheel
done
ls -l dist/*manylinux*.whl
