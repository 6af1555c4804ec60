#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup_aarch64.sh   installs into .deps/ what runs aarch64 programs on this machine, without changing the system:
#   .deps/qemu      qemu-user of a newer Debian, because Debian 12's crashes in ONNX Runtime
#   .deps/aarch64   this distribution's Python and C library for aarch64, with ONNX Runtime and NumPy of demo.txt
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
source tools/apt.sh

get_qemu() {
  (cd "$APT_DIR/download" && private_apt apt-get download qemu-user >/dev/null)
  rm -rf "$DEPS/qemu" && mkdir -p "$DEPS/qemu"
  dpkg-deb --fsys-tarfile "$APT_DIR"/download/qemu-user_*.deb | tar -x -C "$DEPS/qemu" --strip-components=3 ./usr/bin/qemu-aarch64
}

# Fetches Python and its dependencies, which apt resolves for a machine with nothing installed.
get_system() {
  local package
  touch "$APT_DIR/nothing-installed"
  private_apt apt-get install -y --download-only --no-install-recommends -o Dir::State::status="$APT_DIR/nothing-installed" \
    -o Debug::NoLocking=1 python3-minimal libpython3-stdlib libstdc++6 >/dev/null
  rm -rf "$DEPS/aarch64" && mkdir -p "$DEPS/aarch64"
  for package in "$APT_DIR"/cache/archives/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -C "$DEPS/aarch64"; done
}

if [ ! -x "$DEPS/qemu/qemu-aarch64" ]; then
  (open_archive newer deb && step "Fetching qemu-user" get_qemu)
fi
if [ ! -x "$DEPS/aarch64/usr/bin/python3" ]; then
  (open_archive own deb arm64 && step "Fetching Python for aarch64" get_system)
fi
version="$(basename "$(readlink "$DEPS/aarch64/usr/bin/python3")" | sed s/python//)"
platforms=()
for glibc in 2_28 2_27 2_17; do platforms+=(--platform "manylinux_${glibc}_aarch64"); done
get_packages() {
  python -m pip --disable-pip-version-check install -q --no-deps --no-compile --only-binary :all: --python-version "$version" \
    "${platforms[@]}" --platform manylinux2014_aarch64 --target "$DEPS/aarch64/packages" -c requirements/demo.txt onnxruntime numpy
}
if ! stamp_is "$DEPS/aarch64/.stamp" requirements/demo.txt; then
  rm -rf "$DEPS/aarch64/packages"
  step "Installing ONNX Runtime and NumPy for aarch64's Python $version" get_packages
  stamp_write "$DEPS/aarch64/.stamp" requirements/demo.txt
fi
