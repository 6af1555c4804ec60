#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu.sh   tests on a machine with a GPU: builds with CUDA for that GPU, runs the C++ tests on it, also under
# compute-sanitizer, then the Python tests of tests/gpu, and the benchmarks. Writes a report, gpu-report.txt, and the
# output of each part to gpu-logs/. A part that fails does not end the run. The last lines are a table of the parts.
# Requires nvcc and a torch that supports the GPU.
#
# Environment variables:
#   PYTHON=python3            the Python whose torch supports the GPU (default: .venv's)
#   PARTS='python memcheck'   runs only these parts: cpp python memcheck racecheck initcheck synccheck bench
#   TESTS='roi_align_test …'  the C++ test programs that run under compute-sanitizer (default: those of all operators,
#                             of the TensorRT plugins and of tests/)
#   JOBS=8                    how many tests run at the same time (default: half of the cores)
#   LIMIT=600                 seconds after which a program under compute-sanitizer is ended
#   BUILT=1                   uses build/cuda as it is, without configuring and building
#   POLYOP_MMCV_SOURCE=…      a checkout of MMCV, whose own tests then run, too
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
ALL='cpp python memcheck racecheck initcheck synccheck bench'
PYTHON="${PYTHON:-$VENV/bin/python}"
PARTS="${PARTS:-$ALL}"
JOBS="${JOBS:-$((($(nproc) + 1) / 2))}"
LIMIT="${LIMIT:-600}"
REPORT="$ROOT/gpu-report.txt"
LOGS="$ROOT/gpu-logs"
for part in $PARTS; do
  # shellcheck disable=SC2086
  one_of "$part" $ALL
done

command -v nvidia-smi >/dev/null || die "nvidia-smi was not found: this machine has no NVIDIA GPU"
"$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
  die "torch of $PYTHON does not support the GPU: set PYTHON to a python3 whose torch does"

if [ -z "${BUILT:-}" ]; then
  has_cuda || die "nvcc was not found: set CUDA_HOME to the folder of CUDA"
  capability="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n1 | tr -d .)"
  # Other targets may have configured the build for another GPU.
  step "Configuring build/cuda for sm_$capability" \
    cmake --preset cuda --log-level=NOTICE -DCMAKE_CUDA_ARCHITECTURES="$capability-real"
  tools/build.sh cuda
fi
export POLYOP_NEEDS_GPU=1 # a test that finds no GPU fails
export POLYOP_LIBRARY_DIR="$ROOT/build/cuda/lib" PYTHONPATH="$ROOT/python${PYTHONPATH:+:$PYTHONPATH}"

# cpp runs the C++ tests: every kernel on the GPU against its reference.
run_cpp() { ctest --preset cuda -j "$JOBS"; }

# python runs the tests of every runtime. Several processes run them if pytest-xdist is installed.
run_python() {
  local options=()
  ! "$PYTHON" -c 'import xdist' 2>/dev/null || options=(-n "$JOBS")
  "$PYTHON" -m pytest -q -rs -p no:cacheprovider "${options[@]}" tests/gpu
}

run_bench() { "$PYTHON" bench/gpu.py --json "$ROOT/gpu-report.json" --table "$ROOT/gpu-report.md"; }

# Runs the C++ test program $2 under compute-sanitizer's tool $1. Its output goes to a separate log.
sanitize() {
  local log="$LOGS/$1/$2.log" code=0
  timeout "$LIMIT" compute-sanitizer --tool "$1" --error-exitcode 9 "$ROOT/build/cuda/bin/$2" --gtest_brief=1 \
    >"$log" 2>&1 || code=$?
  case "$code" in
    0) echo "passed $2" ;;
    124) echo "FAILED $2: ended after $LIMIT seconds ($log)" ;;
    *) echo "FAILED $2: exit code $code ($log): $(grep -m1 -E '^={9} (Error|Invalid|Uninit|Barrier|Program hit|.*[Hh]azard)|FAILED' "$log" || true)" ;;
  esac
  return "$code"
}
export -f sanitize
export ROOT LOGS LIMIT

# Prints the C++ test programs that call kernels.
programs() {
  if [ -n "${TESTS:-}" ]; then
    printf '%s\n' $TESTS
  else
    local test
    for test in "$ROOT"/ops/*/*/*_test.cc "$ROOT"/adapters/tensorrt/*_test.cc "$ROOT"/tests/*_test.cc; do
      test="$(basename "$test" .cc)"
      [ ! -x "$ROOT/build/cuda/bin/$test" ] || echo "$test"
    done
  fi
}

# Runs the programs under compute-sanitizer's tool $1, $JOBS at a time, but not more than 8: ten processes of it share a
# range of ports. xargs goes on after a failure.
run_sanitizer() {
  mkdir -p "$LOGS/$1"
  programs | xargs -P "$((JOBS < 8 ? JOBS : 8))" -I '{}' bash -c "sanitize $1 {} || exit 1" | tee "$LOGS/$1/all.txt" || true
  echo "$1: $(grep -c ^passed "$LOGS/$1/all.txt") programs passed, $(grep -c ^FAILED "$LOGS/$1/all.txt") failed"
  grep -q ^passed "$LOGS/$1/all.txt" && ! grep -q ^FAILED "$LOGS/$1/all.txt"
}

# record PART TITLE COMMAND…   runs a part of the tests. Its output is in the report and in a separate log.
failed=0
table=()
record() {
  local part="$1" title="$2" start="$SECONDS" result=passed log="$LOGS/$1.log"
  shift 2
  [[ " $PARTS " = *" $part "* ]] || return 0
  say "${BOLD}==> $title${PLAIN}"
  case "$part" in
    *check)
      if ! command -v compute-sanitizer >/dev/null; then
        table+=("$part|not run: compute-sanitizer was not found|0")
        echo "== $title: not run: compute-sanitizer was not found" >>"$REPORT"
        return 0
      fi
      ;;
  esac
  if ! "$@" 2>&1 | tee "$log"; then
    result=FAILED
    failed=1
  fi
  { echo "== $title" && cat "$log"; } >>"$REPORT"
  table+=("$part|$result|$((SECONDS - start))|$(summary "$part" "$log")")
}

# Prints the line of a log that counts results.
summary() {
  local pattern
  case "$1" in
    cpp) pattern='tests passed' ;;
    python) pattern='(passed|failed|error).* in [0-9.]+s' ;;
    *check) pattern='programs passed' ;;
    *) return 0 ;;
  esac
  grep -E "$pattern" "$2" | tail -n1 || true
}

rm -rf "$LOGS"
mkdir -p "$LOGS"
{
  echo "polyop $(git describe --always --dirty 2>/dev/null)"
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  nvcc --version 2>/dev/null | tail -n2 || true
  "$PYTHON" -c 'import torch; print("torch", torch.__version__)'
} >"$REPORT"

record cpp "C++ tests: every kernel on the GPU against its reference" run_cpp
record python "Every operator in PyTorch, ONNX Runtime, JAX and TensorRT on the GPU" run_python
for tool in memcheck racecheck initcheck synccheck; do
  record "$tool" "C++ tests under compute-sanitizer's $tool" run_sanitizer "$tool"
done
record bench "Benchmarks" run_bench
{
  printf '\n%-10s %8s  %-8s %s\n' part seconds result summary
  for row in "${table[@]}"; do
    IFS='|' read -r part result seconds counts <<<"$row"
    printf '%-10s %8s  %-8s %s\n' "$part" "$seconds" "$result" "$counts"
  done
} | tee -a "$REPORT"
say "    the report is ${REPORT#"$ROOT"/}, the logs are in ${LOGS#"$ROOT"/}/"
exit $failed
