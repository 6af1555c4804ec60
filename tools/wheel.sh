#!/usr/bin/env bash
# Builds a wheel into dist/ with .venv's tools, in a build tree of its own.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/setup.sh
PATH="$VENV/bin:$PATH"
step "Building a wheel" python -m pip wheel --no-deps --no-build-isolation -Cbuild-dir=build/wheel -w dist .
ls -l dist/*.whl
