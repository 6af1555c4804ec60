#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup_python.sh             installs pinned packages into .venv, and older runtimes for compatibility tests into .deps
# setup_python.sh demo        installs only what the build and the demonstration need
# setup_python.sh bench       also installs what the benchmarks need
# setup_python.sh openmmlab   also installs what tools/test_openmmlab.sh needs
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 1 -- "$@"
[ $# -eq 0 ] || one_of "$1" demo bench openmmlab

PYTHON="${PYTHON:-python3}"
PIP=("$VENV/bin/python" -m pip --disable-pip-version-check)

has_venv() { [ -x "$VENV/bin/python" ] && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; }

# Runs pip and prints one line a package. The log is kept, and its end is printed if pip fails. Modules are compiled
# when they are imported: compiling all of PyTorch and transformers takes longer than their download.
pip_install() {
  local log="$VENV/pip.log"
  "${PIP[@]}" install --progress-bar off --no-compile "$@" 2>&1 | tee "$log" | show_packages && return
  grep -v '^WARNING' "$log" | tail -n 30 >&2
  return 1
}
show_packages() {
  local before='' after='\n' word rest
  if [ -t 1 ]; then before='\r\e[K' after=''; fi
  while read -r word rest; do
    case "$word" in
      Collecting) printf "$before    %s$after" "${rest%% *}" ;;
      Installing) printf "$before    unpacking$after" ;;
    esac
  done
  printf "$before"
}

# install NAME [OPTION…]   installs requirements/NAME.txt with pip's options, unless this very file is installed
install() {
  local stamp="$VENV/.stamp-$1" file="requirements/$1.txt"
  shift
  stamp_is "$stamp" "$file" && return
  step "Installing $file: $(grep -vc '^#' "$file") packages and their dependencies" pip_install -r "$file" "$@"
  stamp_write "$stamp" "$file"
}

"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  die "$PYTHON: expected Python 3.11 or newer, got $("$PYTHON" --version). Set PYTHON=/path/to/a/newer/python3."
has_venv || step "Creating .venv ($("$PYTHON" --version))" "$PYTHON" -m venv --clear "$VENV"

if [ "${1:-}" = demo ]; then
  install demo
  exit 0
fi
if [ "${1:-}" = bench ]; then
  install bench -c requirements/torch.txt
  exit 0
fi
install torch
install demo
install dev
install exporters --no-deps
install models -c requirements/torch.txt
install jax -c requirements/models.txt
install tvm-ffi --no-deps
install executorch --no-deps
install openvino --no-deps
install lint

# Prints the requirements of a file that apply to this Python, one a line, without their conditions.
requirements_for() {
  "$VENV/bin/python" - "requirements/$1.txt" <<'PYTHON'
import sys
from pip._vendor.packaging.requirements import Requirement
for line in open(sys.argv[1]):
    line = line.split("#")[0].strip()
    if line and ((required := Requirement(line)).marker is None or required.marker.evaluate()):
        print(f"{required.name}{required.specifier}")
PYTHON
}

# unpack NAME   unpacks an older runtime, requirements/NAME.txt, into .deps/PACKAGE-VERSION
unpack() {
  local packages folder
  mapfile -t packages < <(requirements_for "$1")
  folder="$DEPS/${packages[0]/==/-}"
  stamp_is "$folder/.stamp" "${packages[@]}" && return
  rm -rf "$folder"
  step "Unpacking an older runtime for compatibility tests into ${folder#"$ROOT"/}" \
    pip_install --no-deps --target "$folder" "${packages[@]}"
  stamp_write "$folder/.stamp" "${packages[@]}"
}
unpack onnxruntime-old
unpack onnxruntime-library
unpack openvino-old

# unpack_all NAME TITLE   unpacks the packages of requirements/NAME.txt into .deps/NAME
unpack_all() {
  local folder="$DEPS/$1" file="requirements/$1.txt"
  stamp_is "$folder/.stamp" "$file" && return
  rm -rf "$folder"
  step "Unpacking $2 for tests into ${folder#"$ROOT"/}" pip_install --no-deps --target "$folder" -r "$file"
  stamp_write "$folder/.stamp" "$file"
}
if [ "${1:-}" = openmmlab ]; then
  unpack_all openmmlab-more "more of OpenMMLab's packages"
  exit 0
fi
unpack_all torchvision "torchvision's models"
unpack_all timm "timm's models"
unpack_all faces "facenet-pytorch's weights"
unpack_all text "rapidocr's ONNX files"
unpack_all openmmlab "MMCV's Python"
unpack_all spconv "spconv's CPU build"
unpack_all ray "Ray"
unpack_all triton "Triton Inference Server"

# If CUDA is installed: the headers of TensorRT for the plugin library, and TensorRT-RTX for its tests.
if has_cuda; then
  HEADERS="$DEPS/tensorrt" RUNTIME="$DEPS/tensorrt-rtx"
  if [ -z "${TENSORRT_ROOT:-}" ] && ! stamp_is "$HEADERS/.stamp" requirements/tensorrt-headers.txt; then
    rm -rf "$HEADERS"
    unpack_headers() {
      "${PIP[@]}" download -q --no-deps -d "$HEADERS" -r requirements/tensorrt-headers.txt 2>&1 | grep -v '^WARNING' || true
      "$VENV/bin/python" - "$HEADERS" <<'PYTHON'
import pathlib, sys, zipfile
folder = pathlib.Path(sys.argv[1])
(wheel,) = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if "/include/tensorrt/" in name and name.endswith(".h"):
            target = folder / "include" / pathlib.PurePath(name).name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(archive.read(name))
wheel.unlink()
PYTHON
    }
    step "Unpacking the headers of TensorRT into ${HEADERS#"$ROOT"/}" unpack_headers
    stamp_write "$HEADERS/.stamp" requirements/tensorrt-headers.txt
  fi
  if ! stamp_is "$RUNTIME/.stamp" requirements/tensorrt.txt; then
    rm -rf "$RUNTIME"
    step "Unpacking TensorRT-RTX for tests into ${RUNTIME#"$ROOT"/}" \
      pip_install --no-deps --only-binary :all: --target "$RUNTIME" -r requirements/tensorrt.txt
    # TensorRT-RTX's ONNX parser opens the library under this name.
    ln -sf libtensorrt_rtx.so.1 "$RUNTIME/tensorrt_rtx_libs/libtensorrt_rtx.so"
    stamp_write "$RUNTIME/.stamp" requirements/tensorrt.txt
  fi
fi
