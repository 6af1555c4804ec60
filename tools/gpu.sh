#!/usr/bin/env bash
# gpu.sh   tests on a machine with a GPU: builds with CUDA for that GPU, runs the C++ tests on it, also under
# compute-sanitizer, then every operator in each runtime, and the benchmarks. Writes one report, gpu-report.txt.
# Requires nvcc and a torch that supports the GPU: PYTHON= selects the python3 that has it (default: .venv's).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 0 -- "$@"
PYTHON="${PYTHON:-$VENV/bin/python}"
REPORT="$ROOT/gpu-report.txt"

has_cuda || die "nvcc was not found: set CUDA_HOME to the folder of CUDA"
command -v nvidia-smi >/dev/null || die "nvidia-smi was not found: this machine has no NVIDIA GPU"
"$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
  die "torch of $PYTHON does not support the GPU: set PYTHON to a python3 whose torch does"

capability="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n1 | tr -d .)"
# Other targets may have configured the build for another GPU.
step "Configuring build/cuda for sm_$capability" \
  cmake --preset cuda --log-level=NOTICE -DCMAKE_CUDA_ARCHITECTURES="$capability-real"
tools/build.sh cuda
export POLYOP_NEEDS_GPU=1 # a test that finds no GPU fails
export POLYOP_LIBRARY_DIR="$ROOT/build/cuda/lib" PYTHONPATH="$ROOT/python${PYTHONPATH:+:$PYTHONPATH}"

# Runs the C++ tests of the operators and of the TensorRT plugins under compute-sanitizer's tool $1.
sanitized() {
  local test bad=0
  for test in "$ROOT"/ops/*/*_test.cc "$ROOT"/adapters/tensorrt/*_test.cc "$ROOT"/tests/*_test.cc; do
    test="$(basename "$test" .cc)"
    if ! compute-sanitizer --tool "$1" --error-exitcode 9 "$ROOT/build/cuda/bin/$test" --gtest_brief=1; then
      echo "FAILED under $1: $test"
      bad=1
    fi
  done
  return $bad
}

failed=0
record() { # record TITLE command…
  local title="$1"
  shift
  say "${BOLD}==> $title${PLAIN}"
  { echo "== $title"; "$@" 2>&1; } | tee -a "$REPORT" || failed=1
}
{
  echo "polyop $(git describe --always --dirty 2>/dev/null)"
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
  nvcc --version | tail -n2
} >"$REPORT"

record "C++ tests: every kernel on the GPU against its reference" ctest --preset cuda
record "Every operator in PyTorch, ONNX Runtime and TensorRT on the GPU" "$PYTHON" -m pytest -q -rs -p no:cacheprovider tests/gpu
for tool in memcheck racecheck; do
  if command -v compute-sanitizer >/dev/null; then
    record "C++ tests under compute-sanitizer's $tool" sanitized "$tool"
  else
    record "C++ tests under compute-sanitizer's $tool" echo "not run: compute-sanitizer was not found"
  fi
done
record "Benchmarks" "$PYTHON" bench/gpu.py --json "$ROOT/gpu-report.json"
say "    the report is ${REPORT#"$ROOT"/}"
exit $failed
