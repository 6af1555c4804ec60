#!/usr/bin/env bash
# Every test. A test that did not run fails, here and in cmake/testing.cmake and tests/conftest.py.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/setup.sh
PATH="$VENV/bin:$PATH"
RESULTS="$ROOT/build/test-results"
rm -rf "$RESULTS"

run_ctest() {
  GTEST_OUTPUT="xml:$RESULTS/$1/" ctest --preset "$1" --progress
}
run_pytest() { python -m pytest --junitxml="$RESULTS/python/pytest.xml" "$@"; }

tools/build.sh release
step "C++ tests" run_ctest release
tools/build.sh asan
step "C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer" run_ctest asan
tools/build.sh tsan
step "C++ tests under ThreadSanitizer" run_ctest tsan
step "Python tests" run_pytest "$@"
python tools/test_summary.py "$RESULTS" release asan tsan python
