#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup_system.sh [PACKAGE…]   installs missing system packages, and these, as root or with passwordless sudo. Otherwise
# prints the command to run as root and exits with 1.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept any -- "$@"

PACKAGES=(
  "$@"
  g++ libgtest-dev                                 # build, tests
  libcli11-dev nlohmann-json3-dev                  # the program: command line, JSON
  libprotobuf-dev protobuf-compiler                #   ONNX files
  libpng-dev libturbojpeg0-dev zlib1g-dev libminizip-dev #   images, .npz files
  graphviz                                         #   inspect --svg, --html
)
OPTIONAL=(ccache)
# A Python that is not the system's may include venv.
"${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || PACKAGES+=(python3-venv)

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
# Not a pipe: `grep -q` may end before apt-cache does, which then fails.
available() { grep -q 'Candidate: [^(]' <<<"$(apt-cache policy "$1" 2>/dev/null)"; }
run_as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}
may_be_root() { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }

install() {
  run_as_root env DEBIAN_FRONTEND="${DEBIAN_FRONTEND:-noninteractive}" \
    apt-get install -y -q --no-install-recommends -o Dpkg::Use-Pty=0 "$@"
}
read_lists() { run_as_root apt-get update -q; }

command -v dpkg-query >/dev/null || die "This is not Debian or Ubuntu. Install the equivalents of: ${PACKAGES[*]}"
missing=() optional=()
for package in "${PACKAGES[@]}"; do installed "$package" || missing+=("$package"); done
for package in "${OPTIONAL[@]}"; do command -v "$package" >/dev/null || optional+=("$package"); done
[ $((${#missing[@]} + ${#optional[@]})) -gt 0 ] || exit 0

if ! may_be_root; then
  [ ${#missing[@]} -gt 0 ] || exit 0
  say "System packages are missing. Install them as root:"
  say "    apt-get install ${missing[*]}"
  exit 1
fi
# Container images have no package lists. Until they are read, no package is available.
lists=current
for package in "${missing[@]}"; do available "$package" || lists=old; done
[ "$lists" = current ] || step "Reading apt's package lists" read_lists
for package in "${optional[@]}"; do
  if available "$package"; then missing+=("$package"); fi
done
[ ${#missing[@]} -gt 0 ] || exit 0
title="Installing ${#missing[@]} system packages: ${missing[*]}"
if [ "$lists" = current ]; then
  if (step "$title" install "${missing[@]}"); then exit 0; fi
  step "Reading apt's package lists, which may be old" read_lists
fi
step "$title" install "${missing[@]}"
