#!/usr/bin/env bash
# quick.sh [COMMIT]   builds and tests what the changes since COMMIT touch; without one, those that are not committed, or
# those since the branch left main. The slowest Python tests, sanitizers and CUDA are for `make test`.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/setup.sh
touched="$(python tools/touched.py "$@")"
read -r -a tests <<<"$(sed -n 's/^cxx *//p' <<<"$touched")"
read -r -a targets <<<"$(sed -n 's/^build *//p' <<<"$touched")"
names="$(sed -n 's/^python *//p' <<<"$touched")"
# 5: none was left to run; all that were touched are slow.
run_pytest() { python -m pytest -q -n 2 -m "not slow" -k "$names" || [ $? -eq 5 ]; }
step "Rooms: inclusion goes one way" tools/check_rooms.py
if [ ${#tests[@]} -eq 0 ] && [ -z "$names" ]; then
  say "Nothing that changed has tests."
  exit 0
fi
tools/build.sh release "${tests[@]}" "${targets[@]}"
# Names of tests, whole: nms_test is not nms_rotated_test.
if [ ${#tests[@]} -gt 0 ]; then
  step "C++ tests: ${tests[*]}" ctest --preset release -R "^($(IFS='|' && echo "${tests[*]}"))\$"
fi
if [ -n "$names" ]; then
  step "Python tests: $names" run_pytest
fi
