#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup_windows.sh   installs wine, which runs Windows programs on this machine, and into .deps/windows/ the DLLs of an
# old and the newest supported ONNX Runtime and PyTorch for Windows, from their wheels. Wheels of ONNX Runtime before
# 1.20 have no onnxruntime.dll.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
tools/setup_system.sh wine64

# get_dlls NAME REQUIREMENT   unpacks a wheel for Windows into .deps/windows/NAME
get_dlls() {
  python -m pip --disable-pip-version-check install -q --no-deps --no-compile --only-binary :all: --python-version 3.11 \
    --platform win_amd64 --target "$DEPS/windows/$1" "$2"
}

# requirement FILE NAME   prints the line of a package, without its marker
requirement() { sed -n "s/^\($2==[^;]*\).*/\1/p" "requirements/$1" | head -n 1; }

old="$(requirement onnxruntime-library.txt onnxruntime)"
newest="$(requirement demo.txt onnxruntime)"
old_torch="torch==2.10.0"
newest_torch="$(requirement torch.txt torch)"
if ! stamp_is "$DEPS/windows/.stamp" requirements/{onnxruntime-library,demo,torch}.txt "$0"; then
  rm -rf "$DEPS/windows"
  mkdir -p "$DEPS/windows"
  step "Fetching $old for Windows" get_dlls onnxruntime-old "$old"
  step "Fetching $newest for Windows" get_dlls onnxruntime-newest "$newest"
  step "Fetching $old_torch for Windows" get_dlls torch-old "$old_torch"
  step "Fetching $newest_torch for Windows" get_dlls torch-newest "$newest_torch"
  # wine lacks a function that Intel's OpenMP calls; PyTorch's wheels have a serial replacement.
  for libraries in "$DEPS"/windows/torch-{old,newest}/torch/lib; do
    cp "$libraries"/libiomp{stubs5,5}md.dll
  done
  stamp_write "$DEPS/windows/.stamp" requirements/{onnxruntime-library,demo,torch}.txt "$0"
fi
