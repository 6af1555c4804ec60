#!/usr/bin/env bash
# gpu.sh   on a machine with a GPU: builds with CUDA for that GPU, runs the GPU's tests, the same under compute-sanitizer,
# and the benchmarks; all of it ends in one report, gpu-report.txt. Needs nvcc, and a torch that sees the GPU: PYTHON=
# names the python3 that has it (default: .venv's).
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
PYTHON="${PYTHON:-$VENV/bin/python}"
REPORT="$ROOT/gpu-report.txt"

has_cuda || die "nvcc was not found; set CUDA_HOME to where CUDA is installed."
command -v nvidia-smi >/dev/null || die "nvidia-smi was not found: there is no NVIDIA GPU here."
"$PYTHON" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
  die "$PYTHON has no torch that sees the GPU. Set PYTHON to one that has."

capability="$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n1 | tr -d .)"
CUDAARCHS="${CUDAARCHS:-$capability-real}" tools/build.sh cuda polyop_onnxruntime polyop_torch polyop_tensorrt
export POLYOP_LIBRARY_DIR="$ROOT/build/cuda/lib" PYTHONPATH="$ROOT/python${PYTHONPATH:+:$PYTHONPATH}"

failed=0
record() { # record TITLE command…
  local title="$1"
  shift
  say "${BOLD}==> $title${PLAIN}"
  { echo "== $title"; "$@" 2>&1; } | tee -a "$REPORT" || failed=1
}
{ echo "polyop $(git describe --always --dirty 2>/dev/null)"; nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; nvcc --version | tail -n2; } >"$REPORT"
record "Every operator on the GPU beside the CPU" "$PYTHON" -m pytest -q -rs -p no:cacheprovider gpu
if command -v compute-sanitizer >/dev/null; then
  record "The same under compute-sanitizer" compute-sanitizer --error-exitcode 9 --tool memcheck \
    "$PYTHON" -m pytest -q -p no:cacheprovider gpu -k 'torch_on_the_gpu'
else
  record "The same under compute-sanitizer" echo "not run: compute-sanitizer was not found"
fi
record "Benchmarks" "$PYTHON" gpu/bench.py --json "$ROOT/gpu-report.json"
say "    the report is ${REPORT#"$ROOT"/}"
exit $failed
