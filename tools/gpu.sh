#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpu.sh                  tests on a machine with a GPU: builds with CUDA for that GPU, runs the C++ tests on it, also
#                         under compute-sanitizer, then the Python tests of tests/gpu, and the benchmarks. Writes a
#                         report, gpu-report.txt, and the output of each part to gpu-logs/. A part that fails does not
#                         end the run. The last lines are a table of the parts. Requires a torch that supports the GPU.
# gpu.sh --dry-run        checks all of that on a machine without a GPU: that the build is configured and complete, that
#                         the test programs start, that pytest collects tests/gpu, that the benchmark has its cases and
#                         that compute-sanitizer, if it is there, has the options. Prints the commands of each part
# gpu.sh --pack FILE.tar.xz
#                         writes what PARTS need of a build to an archive, without symbols, for a machine that is lent
#                         for minutes: build here, carry the archive, and run `BUILD=FILE.tar.xz tools/gpu.sh` there.
#                         Parts of C++ need the programs of TESTS; python and bench need the libraries
#
# Environment variables:
#   PYTHON=python3            the Python whose torch supports the GPU (default: .venv's)
#   PARTS='python memcheck'   runs these parts, in this order: cpp python memcheck racecheck initcheck synccheck bench
#   TESTS='roi_align_test …'  the C++ test programs (default: all; under compute-sanitizer those of operators, of the
#                             TensorRT plugins and of tests/)
#   BUDGET=500                seconds after which nothing more is started and what runs is ended; the report names it
#   JOBS=8                    how many tests run at the same time (default: half of the cores)
#   LIMIT=600                 seconds after which a C++ test program is ended
#   BUILD=build/cuda          uses this build, or archive, as it is (default: builds build/cuda)
#   CAPABILITY=90             the GPU of --dry-run, as a compute capability without the point
#   BENCH='--only nms'        options of bench/gpu.py
#   OUTPUT=folder             where the report and the logs are written (default: the checkout)
#   POLYOP_MMCV_SOURCE=…      a checkout of MMCV, whose own tests then run, too
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 1 --dry-run --pack -- "$@"
mode="${1:-run}"
case "$mode" in
  run | --dry-run) [ $# -le 1 ] || refuse "expected no argument, got '$2'" ;;
  --pack) [[ $# -eq 2 && "$2" = *.tar.xz ]] || refuse "expected a file that ends in .tar.xz after --pack" ;;
  *) refuse "expected --dry-run or --pack, got '$mode'" ;;
esac
ALL='cpp python memcheck racecheck initcheck synccheck bench'
PYTHON="${PYTHON:-$VENV/bin/python}"
PARTS="${PARTS:-$ALL}"
JOBS="${JOBS:-$((($(nproc) + 1) / 2))}"
LIMIT="${LIMIT:-600}"
DEADLINE=$((SECONDS + ${BUDGET:-1000000}))
OUTPUT="$(realpath -m "${OUTPUT:-$ROOT}")"
REPORT="$OUTPUT/gpu-report.txt"
LOGS="$OUTPUT/gpu-logs"
OWN_BUILD="${BUILD:+no}"
BUILD="$(realpath -m "${BUILD:-$ROOT/build/cuda}")"
for part in $PARTS; do
  # shellcheck disable=SC2086
  one_of "$part" $ALL
done

# The commands of the parts. --dry-run checks these very options.
PYTEST=("$PYTHON" -m pytest -q -rs -p no:cacheprovider tests/gpu)
# shellcheck disable=SC2206
BENCHMARK=("$PYTHON" bench/gpu.py --json "$OUTPUT/gpu-report.json" --table "$OUTPUT/gpu-report.md" ${BENCH:-})
TEST_OPTIONS=--gtest_brief=1
sanitizer_of() { echo "compute-sanitizer --tool $1 --error-exitcode 9"; }

# Configures and builds build/cuda for a GPU, unless BUILD names a finished build.
build_for() {
  [ -z "$OWN_BUILD" ] || return 0
  configure_for "$1"
  tools/build.sh cuda
}
configure_for() {
  has_cuda || die "nvcc was not found: set CUDA_HOME to the folder of CUDA, or BUILD to a build"
  # Other targets may have configured the build for another GPU.
  step "Configuring build/cuda for sm_$1" cmake --preset cuda --log-level=NOTICE -DCMAKE_CUDA_ARCHITECTURES="$1-real"
}

# Prints the C++ test programs of a part that the build has: those that call kernels, or all for cpp.
programs() {
  local test
  if [ -n "${TESTS:-}" ]; then
    printf '%s\n' $TESTS
  elif [ "$1" = cpp ]; then
    for test in "$BUILD"/bin/*_test; do echo "${test##*/}"; done
  else
    for test in "$ROOT"/ops/*/*/*_test.cc "$ROOT"/adapters/tensorrt/*_test.cc "$ROOT"/tests/*_test.cc; do
      test="${test##*/}"
      test="${test%.cc}"
      [ ! -x "$BUILD/bin/$test" ] || echo "$test"
    done
  fi
}

use_build() {
  export POLYOP_NEEDS_GPU=1 # a test that finds no GPU fails
  export POLYOP_LIBRARY_DIR="$BUILD/lib" PYTHONPATH="$ROOT/python${PYTHONPATH:+:$PYTHONPATH}"
}

dry_run() {
  local part count wrong=0
  wrong() {
    say "    ${RED}wrong:${PLAIN} $*"
    wrong=1
  }
  if [ -z "$OWN_BUILD" ]; then
    configure_for "${CAPABILITY:-90}"
    count="$(ninja -C "$BUILD" -n | grep -c '^\[' || true)"
    [ "$count" -eq 0 ] || wrong "$count steps of the build are left: CUDAARCHS=${CAPABILITY:-90}-real tools/build.sh cuda"
  fi
  [ -d "$BUILD/lib" ] && [ -d "$BUILD/bin" ] || wrong "$BUILD: expected the folders bin and lib"
  use_build
  for part in $PARTS; do
    say "${BOLD}==> $part${PLAIN}"
    case "$part" in
      cpp | *check)
        count=0
        local test names=() command=''
        mapfile -t names < <(programs "$part")
        for test in "${names[@]}"; do
          "$BUILD/bin/$test" --gtest_list_tests >/dev/null 2>&1 && count=$((count + 1)) || wrong "$test does not start"
        done
        [ "$count" -gt 0 ] || wrong "there is no test program"
        [ "$part" = cpp ] || command="$(sanitizer_of "$part") "
        say "    $command$BUILD/bin/… $TEST_OPTIONS: $count programs, $JOBS at a time, $LIMIT seconds each"
        if [ "$part" != cpp ] && ! command -v compute-sanitizer >/dev/null; then
          say "    not checked: compute-sanitizer was not found"
        elif [ "$part" != cpp ]; then
          compute-sanitizer --help | grep -q -- --error-exitcode || wrong "compute-sanitizer has no --error-exitcode"
          compute-sanitizer --help | grep -q "$part" || wrong "compute-sanitizer has no tool $part"
        fi
        ;;
      python)
        say "    ${PYTEST[*]}"
        "${PYTEST[@]}" --collect-only 2>&1 | tail -n1 | grep -E 'tests? collected' || wrong "pytest collects no test"
        ;;
      bench)
        say "    ${BENCHMARK[*]}"
        "${BENCHMARK[@]}" --list | tail -n1 || wrong "the benchmark has no case"
        ;;
    esac
  done
  return $wrong
}

pack() {
  local file="$1" folder part library
  [ ! -e "$file" ] || die "$file exists"
  build_for "${CAPABILITY:-90}"
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' RETURN
  mkdir -p "$folder/bin" "$folder/lib"
  for part in $PARTS; do
    case "$part" in
      cpp | *check)
        for test in $(programs "$part"); do strip -o "$folder/bin/$test" "$BUILD/bin/$test"; done
        ;;
      *)
        for library in "$BUILD"/lib/*.so; do strip -o "$folder/lib/${library##*/}" "$library"; done
        cp -RL "$BUILD/lib/formulas" "$folder/lib/"
        ;;
    esac
  done
  tar -cJf "$file" -C "$folder" bin lib
  say "$file: $(($(stat -c %s "$file") / 1048576)) MiB, $(find "$folder/bin" "$folder/lib" -maxdepth 1 -type f | wc -l) files"
}

# Unpacks BUILD if it is an archive.
if [[ "$BUILD" = *.tar.xz ]]; then
  UNPACKED="$(mktemp -d)"
  trap 'rm -rf "$UNPACKED"' EXIT
  tar -xJf "$BUILD" -C "$UNPACKED"
  BUILD="$UNPACKED"
fi

case "$mode" in
  --dry-run)
    dry_run
    exit
    ;;
  --pack)
    pack "$2"
    exit
    ;;
esac

command -v nvidia-smi >/dev/null || die "nvidia-smi was not found: this machine has no NVIDIA GPU"
"$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
  die "torch of $PYTHON does not support the GPU: set PYTHON to a python3 whose torch does"
build_for "$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n1 | tr -d .)"
use_build
END="$(date +%s)"
END=$((END + DEADLINE - SECONDS))

# Prints the seconds that are left, at least 1.
left() {
  local seconds=$((END - $(date +%s)))
  echo $((seconds > 0 ? seconds : 1))
}

# python runs the tests of every runtime. Several processes run them if pytest-xdist is installed.
run_python() {
  local options=()
  ! "$PYTHON" -c 'import xdist' 2>/dev/null || options=(-n "$JOBS")
  timeout --signal=INT --kill-after=10 "$(left)" "${PYTEST[@]}" "${options[@]}"
}

run_bench() { timeout --signal=INT --kill-after=10 "$(left)" "${BENCHMARK[@]}"; }

# Runs the C++ test program $2 for the part $1: under its tool of compute-sanitizer, unless that is cpp. Each
# program has a log. A program that runs no test, or skips one, has failed.
run_program() {
  local log="$LOGS/$1/$2.log" code=0 command=() limit
  limit="$(left)"
  if [ "$limit" -le 1 ]; then
    echo "LEFT OUT $2"
    return 0
  fi
  [ "$1" = cpp ] || read -ra command <<<"$(sanitizer_of "$1")"
  timeout "$((limit < LIMIT ? limit : LIMIT))" "${command[@]}" "$BUILD/bin/$2" "$TEST_OPTIONS" >"$log" 2>&1 || code=$?
  if [ "$code" -eq 0 ] && grep -qE '\[  SKIPPED \]|Running 0 tests|PASSED  \] 0 tests' "$log"; then
    echo "FAILED $2: it skips a test or has none ($log)"
    return 1
  fi
  case "$code" in
    0) echo "passed $2" ;;
    124) echo "FAILED $2: ended after its limit, or that of the run ($log)" ;;
    *) echo "FAILED $2: exit code $code ($log): $(grep -m1 -E '^={9} (Error|Invalid|Uninit|Barrier|Program hit|.*[Hh]azard)|FAILED' "$log" || true)" ;;
  esac
  return "$code"
}
declare -fx run_program left sanitizer_of
export LOGS BUILD LIMIT END TEST_OPTIONS

# Runs the programs of a part, $JOBS at a time, but not more than 8 under compute-sanitizer: ten processes of it share a
# range of ports. xargs goes on after a failure.
run_programs() {
  local jobs="$JOBS"
  [ "$1" = cpp ] || [ "$jobs" -lt 8 ] || jobs=8
  mkdir -p "$LOGS/$1"
  programs "$1" | xargs -P "$jobs" -I '{}' bash -c "run_program $1 {} || exit 1" | tee "$LOGS/$1/all.txt" || true
  echo "$1: $(grep -c ^passed "$LOGS/$1/all.txt") programs passed, $(grep -c ^FAILED "$LOGS/$1/all.txt") failed, $(grep -c '^LEFT OUT' "$LOGS/$1/all.txt") left out"
  grep -q ^passed "$LOGS/$1/all.txt" && ! grep -qE '^(FAILED|LEFT OUT)' "$LOGS/$1/all.txt"
}

# record PART TITLE COMMAND…   runs a part of the tests. Its output is in the report and in a separate log.
failed=0
table=()
record() {
  local part="$1" title="$2" start="$SECONDS" result=passed log="$LOGS/$1.log"
  shift 2
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
    cpp | *check) pattern='programs passed' ;;
    python) pattern='(passed|failed|error).* in [0-9.]+s' ;;
    bench) pattern='rows in' ;;
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

for part in $PARTS; do
  case "$part" in
    cpp) record cpp "C++ tests: every kernel on the GPU against its reference" run_programs cpp ;;
    python) record python "Every operator in PyTorch, ONNX Runtime, JAX and TensorRT on the GPU" run_python ;;
    bench) record bench "Benchmarks" run_bench ;;
    *) record "$part" "C++ tests under compute-sanitizer's $part" run_programs "$part" ;;
  esac
done
{
  printf '\n%-10s %8s  %-8s %s\n' part seconds result summary
  for row in "${table[@]}"; do
    IFS='|' read -r part result seconds counts <<<"$row"
    printf '%-10s %8s  %-8s %s\n' "$part" "$seconds" "$result" "$counts"
  done
} | tee -a "$REPORT"
say "    the report is ${REPORT#"$ROOT"/}, the logs are in ${LOGS#"$ROOT"/}/"
exit $failed
