#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quick.sh [COMMIT]   builds and tests what the changes since COMMIT affect. Without COMMIT: the uncommitted changes, or
# those since the branch left main if there are none. Skips slow Python tests and those of `make test-rest`, sanitizers
# and CUDA.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 1 -- "$@"
tools/setup.sh
touched="$(python tools/touched.py "$@")"
read -r -a tests <<<"$(sed -n 's/^cxx *//p' <<<"$touched")"
read -r -a targets <<<"$(sed -n 's/^build *//p' <<<"$touched")"
names="$(sed -n 's/^python *//p' <<<"$touched")"
read -r -a files <<<"$(sed -n 's/^files *//p' <<<"$touched")"
# pytest exits with 5 if no test is selected, because all affected tests belong to `make test-rest`.
run_pytest() { python -m pytest -q -n 2 -m "not slow and not rest" -k "$names" "${files[@]}" || [ $? -eq 5 ]; }
step "Checking the direction of dependencies" tools/check_rooms.py
if [ ${#tests[@]} -eq 0 ] && [ ${#files[@]} -eq 0 ]; then
  say "No test is affected by the changes."
  exit 0
fi
tools/build.sh release "${tests[@]}" "${targets[@]}"
# Anchored names: nms_test must not select nms_rotated_test. robustness_test is two tests, .0 and .1.
if [ ${#tests[@]} -gt 0 ]; then
  step "C++ tests: ${tests[*]}" ctest --preset release -R "^($(IFS='|' && echo "${tests[*]}"))(\.[01])?\$"
fi
if [ ${#files[@]} -gt 0 ]; then
  step "Python tests: $names" run_pytest
fi
