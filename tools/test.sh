#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh [rest|all] [pytest options…]   runs the tests
#
#   test.sh         the release build, all C++ tests, and each Python area once
#   test.sh rest    what that leaves out: compiles the CUDA kernels, makes more random calls, runs the C++ tests of some
#                   operators under AddressSanitizer and UndefinedBehaviorSanitizer, and the Python tests with the
#                   marker `rest`
#   test.sh all     both, every operator under AddressSanitizer and ThreadSanitizer, and the Python tests with the
#                   marker `slow`: whole models, wheels from source; PyTorch's databases of operators
#
# A test that did not run fails, here and in cmake/testing.cmake and tests/conftest.py.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
part=test
case "${1:-}" in
  rest | all)
    part="$1"
    shift
    ;;
  '' | -*) ;;
  *) refuse "expected rest or all, got '$1'" ;;
esac
accept_pytest_options "$@"
tools/setup.sh
PATH="$VENV/bin:$PATH"
RESULTS="$ROOT/build/test-results"
DATABASES=tests/aten/test_databases.py
rm -rf "$RESULTS"

run_ctest() { GTEST_OUTPUT="xml:$RESULTS/$1/" ctest --preset "$@"; }
# Two processes: most tests wait for one thread of a program or a compiler. tests/conftest.py starts the slowest first.
run_pytest() { python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --junitxml="$RESULTS/python/pytest.xml" "$@"; }

# A failed stage does not prevent the others.
stages=()
failed=()
stage() {
  local name="$1" title="$2"
  shift 2
  stages+=("$name")
  (step "$title" "$@") || failed+=("$title")
}

# Compiles the CUDA kernels, also for TensorRT's parser and builder. Uses the build for GPUs if there is one.
build_cuda() {
  if has_cuda; then
    local preset=cuda-check
    [ ! -d build/cuda ] || preset=cuda
    tools/build.sh "$preset" polyop_tensorrt polyop_onnxruntime_adapter polyop_torch_adapter polyop_testing
  else
    say "==> nvcc was not found: not compiling the CUDA kernels. The operators' tests run them on the CPU"
  fi
}

tools/build.sh release
[ "$part" = test ] || build_cuda
[ "$part" = rest ] || stage release "C++ tests" run_ctest release
case "$part" in
  test)
    stage python "Python tests" run_pytest -m 'not slow and not rest' "$@"
    ;;
  rest)
    export POLYOP_CALLS_FACTOR=2
    stage release "Twice as many random calls" run_ctest release -R '^(robustness|random_models)_test'
    tools/build.sh asan-some
    stage asan-some "C++ tests of some operators under AddressSanitizer and UndefinedBehaviorSanitizer" run_ctest asan-some
    stage python "Python tests of the rest" run_pytest -m 'rest and not slow' "$@"
    ;;
  all)
    tools/build.sh asan
    stage asan "C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer" run_ctest asan
    tools/build.sh tsan
    stage tsan "C++ tests under ThreadSanitizer" run_ctest tsan
    stage python "Python tests" run_pytest --ignore="$DATABASES" "$@"
    stage databases "PyTorch's test databases in ONNX Runtime" python -m pytest -n 2 --dist worksteal \
      --junitxml="$RESULTS/databases/pytest.xml" "$DATABASES" "$@"
    ;;
esac

for title in "${failed[@]}"; do say "${RED}failed:${PLAIN} $title"; done
python tools/test_summary.py "$RESULTS" "${stages[@]}" && [ ${#failed[@]} -eq 0 ]
