#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wasm.sh [OPERATOR|ROOM…]   compiles the operators, or all of rooms of ops/, for WebAssembly, and writes the npm
# package into build/wasm/package. Without operators: those of the preset wasm, which are all that detectors need.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept any -- "$@"
[ -e python/polyop/lib/libpolyop_onnxruntime.so ] || die "Run make build first: the package is written from its definitions."
tools/setup_portable.sh
unset CC CXX # the toolchain file sets them
operators="$(IFS=';' && printf '%s' "$*")"
step "Configuring build/wasm" cmake --preset wasm --log-level=NOTICE ${operators:+-DPOLYOP_OPS="$operators"}
step "Building build/wasm" cmake --build --preset wasm --target polyop_wasm
step "Writing the package" python tools/web.py build/wasm
say "    $(stat -c %s build/wasm/bin/polyop.wasm) bytes, $(gzip -9 -c build/wasm/bin/polyop.wasm | wc -c) compressed"
