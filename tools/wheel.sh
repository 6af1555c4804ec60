#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# wheel.sh   builds a wheel for this machine into dist/, in the build tree build/wheel.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
tools/setup.sh
PATH="$VENV/bin:$PATH"
step "Building a wheel" python -m pip wheel -v --no-deps --no-build-isolation -Cbuild-dir=build/wheel -w dist .
ls -l dist/*.whl
