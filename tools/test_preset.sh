#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_preset.sh PRESET   builds a preset of CMakePresets.json (release, asan, asan-some, tsan or cuda) and runs its C++
# tests.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 1 -- "$@"
one_of "${1:-}" release asan asan-some tsan cuda
tools/setup.sh
tools/build.sh "$1"
step "Running the C++ tests of build/$1" ctest --preset "$1"
