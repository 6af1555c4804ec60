# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts in tools/. Defines the project's paths, progress lines with times, and the command line that
# all scripts share: `--help` prints the comment at the head of the script, and `accept` refuses unknown arguments.
set -euo pipefail

# Prints the comment at the head of the script.
usage() { sed -n '/^# SPDX/d; 2,${/^#/!q; s/^# \{0,1\}//p}' "${BASH_SOURCE[-1]}"; }
for argument in "$@"; do
  case "$argument" in
    -h | --help)
      usage
      exit 0
      ;;
  esac
done
unset argument

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
VENV="$ROOT/.venv"
DEPS="$ROOT/.deps"
cd "$ROOT"
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
[ ! -d "$VENV/bin" ] || PATH="$VENV/bin:$PATH"
# Compiled modules are kept, outside the source tree. Otherwise each process that imports torch compiles 6,000 of them.
unset PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX="$DEPS/bytecode"

if [ -t 1 ]; then BOLD=$'\e[1m' GREEN=$'\e[32m' RED=$'\e[31m' PLAIN=$'\e[0m'; else BOLD='' GREEN='' RED='' PLAIN=''; fi

say() { printf '%s\n' "$*"; }
die() {
  printf '%s\n' "${RED}error:${PLAIN} $*" >&2
  exit 1
}

# refuse MESSAGE   reports a wrong command line and exits with 2
refuse() {
  printf '%s\n' "${RED}error:${PLAIN} $*. See: $0 --help" >&2
  exit 2
}

# accept COUNT [OPTION…] -- ARGUMENT…   refuses options that are not listed and more than COUNT other arguments. COUNT
# is `any` for scripts that pass their arguments on.
accept() {
  local limit="$1" known=' ' count=0 argument
  shift
  while [ "$1" != -- ]; do
    known+="$1 "
    shift
  done
  shift
  for argument in "$@"; do
    case "$argument" in
      -*) [[ "$known" = *" ${argument%%=*} "* ]] || refuse "unknown option '$argument'" ;;
      *) count=$((count + 1)) ;;
    esac
  done
  [ "$limit" = any ] || [ "$count" -le "$limit" ] || refuse "expected at most $limit arguments, got $count"
}

# one_of VALUE WORD…   refuses a value that is not among the words
one_of() {
  local value="$1"
  shift
  [[ " $* " = *" $value "* ]] || refuse "expected one of: $*, got '$value'"
}

# Refuses options that pytest does not know, for scripts that pass their arguments on to pytest.
accept_pytest_options() {
  [ ! -x "$VENV/bin/pytest" ] || "$VENV/bin/python" -m pytest --noconftest --markers "$@" >/dev/null 2>&1 || refuse "pytest refuses: $*"
}

# options_of FILE   prints the options that a Python program defines, for scripts that pass their arguments on to it
options_of() { grep -o '"--[a-z][a-z-]*"' "$1" | tr -d '"'; }

# step TITLE COMMAND…   prints the title, runs the command and prints how long it took
step() {
  local title="$1" start=$SECONDS
  shift
  say "${BOLD}==> $title${PLAIN}"
  "$@" || die "'$title' failed (see above)"
  say "    ${GREEN}done${PLAIN} in $((SECONDS - start)) s"
}

# stamp_is FILE INPUTS…   succeeds if FILE records the hash of exactly these inputs (files or words)
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

# One name for the compiler. Otherwise the wheel's build would use g++ and CMake c++, which ccache treats as different.
export CC="${CC:-gcc}" CXX="${CXX:-g++}"
# Generated headers are in each build tree. Relative paths let ccache share them between trees.
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$ROOT}"

# Prints the version of the Python package, which tags and release files share.
polyop_version() { sed -n 's/^__version__ = "\(.*\)"$/\1/p' python/polyop/__init__.py; }

# audit_wheel TREE   tags the wheel in TREE/raw for the oldest glibc that has all its symbols and writes it to
# TREE/audited. PyTorch's own library is not bundled. Requires: tools/setup_portable.sh has installed auditwheel.
audit_wheel() {
  PYTHONPATH="$DEPS/wheel-tools" PATH="$DEPS/wheel-tools/bin:$PATH" python -m auditwheel repair --plat auto \
    --exclude libtorch_cpu.so --wheel-dir "$1/audited" "$1"/raw/*.whl
}

# Succeeds if nvcc is on the PATH or in CUDA's default folder.
[ -d "${CUDA_HOME:-/usr/local/cuda}/bin" ] && PATH="$PATH:${CUDA_HOME:-/usr/local/cuda}/bin"
has_cuda() { command -v nvcc >/dev/null; }
