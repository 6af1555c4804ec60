# Shared by the scripts in tools/: where things are, and step lines with times.
set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="$ROOT/.venv"
DEPS="$ROOT/.deps"
cd "$ROOT"
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
[ ! -d "$VENV/bin" ] || PATH="$VENV/bin:$PATH"

if [ -t 1 ]; then BOLD=$'\e[1m' GREEN=$'\e[32m' RED=$'\e[31m' PLAIN=$'\e[0m'; else BOLD='' GREEN='' RED='' PLAIN=''; fi

say() { printf '%s\n' "$*"; }
die() {
  printf '%s\n' "${RED}error:${PLAIN} $*" >&2
  exit 1
}

# step "What happens" command…   prints the line, runs the command, prints how long it took
step() {
  local title="$1" start=$SECONDS
  shift
  say "${BOLD}==> $title${PLAIN}"
  "$@" || die "'$title' failed (see above)"
  say "    ${GREEN}done${PLAIN} in $((SECONDS - start)) s"
}

# stamp_is FILE INPUTS…   whether FILE records the hash of exactly these inputs (files or words)
stamp_of() {
  local item
  for item in "$@"; do
    if [ -f "$item" ]; then sha256sum <"$item"; else printf '%s\n' "$item"; fi
  done | sha256sum | cut -d' ' -f1
}
stamp_is() {
  local file="$1"
  shift
  [ -f "$file" ] && [ "$(cat "$file")" = "$(stamp_of "$@")" ]
}
stamp_write() {
  local file="$1"
  shift
  stamp_of "$@" >"$file"
}

# One name for the compiler: what builds the wheel picks g++, CMake alone c++, and ccache takes them for two.
export CC="${CC:-gcc}" CXX="${CXX:-g++}"
# Generated headers lie in each build tree; relative to it they are the same.
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$ROOT}"

# The version that the Python package, the tags and the files of a release have.
polyop_version() { sed -n 's/^__version__ = "\(.*\)"$/\1/p' python/polyop/__init__.py; }

# audit_wheel TREE   names the wheel in TREE/raw for the oldest glibc that has all its symbols, into TREE/audited. PyTorch's
# library is PyTorch's. tools/setup_portable.sh installs auditwheel.
audit_wheel() {
  PYTHONPATH="$DEPS/wheel-tools" PATH="$DEPS/wheel-tools/bin:$PATH" python -m auditwheel repair --plat auto \
    --exclude libtorch_cpu.so --wheel-dir "$1/audited" "$1"/raw/*.whl
}

# Whether nvcc is here: on the path, or where CUDA is installed.
[ -d "${CUDA_HOME:-/usr/local/cuda}/bin" ] && PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"
has_cuda() { command -v nvcc >/dev/null; }
