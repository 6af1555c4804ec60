#!/usr/bin/env bash
# test.sh [all] [pytest options…]   the tests; `all`: also those that take too long for each change: every operator under
# AddressSanitizer and ThreadSanitizer, whole models, wheels from source. A test that did not run fails, here and in
# cmake/testing.cmake and tests/conftest.py.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/setup.sh
PATH="$VENV/bin:$PATH"
RESULTS="$ROOT/build/test-results"
rm -rf "$RESULTS"

run_ctest() { GTEST_OUTPUT="xml:$RESULTS/$1/" ctest --preset "$1"; }
# Two at a time: most wait for one thread of a program or a compiler. In the order of tests/conftest.py: the slowest first.
run_pytest() { python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --junitxml="$RESULTS/python/pytest.xml" "$@"; }

all=no
if [ "${1:-}" = all ]; then
  all=yes
  shift
fi

# A stage that fails does not keep the others from running.
failed=()
stage() {
  local title="$1"
  shift
  (step "$title" "$@") || failed+=("$title")
}

tools/build.sh release
# The CUDA kernels are compiled to see that they compile, and for TensorRT's parser and builder; a C++ test with them, as
# `make gpu` builds all. Whoever has a build for GPUs keeps it.
if has_cuda; then
  preset=cuda-check
  [ ! -d build/cuda ] || preset=cuda
  tools/build.sh "$preset" polyop_tensorrt polyop_onnxruntime_adapter polyop_torch_adapter polyop_testing
else
  say "==> No CUDA here: its kernels run on the CPU, in the operators' tests, but are not compiled"
fi
stages=(release)
stage "C++ tests" run_ctest release
if [ "$all" = yes ]; then
  stages+=(asan tsan)
  tools/build.sh asan
  tools/build.sh tsan
  stage "C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer" run_ctest asan
  stage "C++ tests under ThreadSanitizer" run_ctest tsan
  stage "Python tests" run_pytest "$@"
else
  stages+=(asan-some)
  tools/build.sh asan-some
  stage "C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer, some operators" run_ctest asan-some
  stage "Python tests but the slow ones" run_pytest -m 'not slow' "$@"
fi

for title in "${failed[@]}"; do say "${RED}failed:${PLAIN} $title"; done
python tools/test_summary.py "$RESULTS" "${stages[@]}" python && [ ${#failed[@]} -eq 0 ]
