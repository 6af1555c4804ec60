#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# setup.sh [demo]   installs all dependencies: system packages, .venv and .deps. Skips what is current. `demo` leaves
# out the Python packages that only tests and linters need, PyTorch among them.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept 1 -- "$@"
[ $# -eq 0 ] || one_of "$1" demo
tools/setup_system.sh
# Both mostly wait for downloads, so they run concurrently. The output of setup_deps.sh is printed last.
said="$(mktemp)"
trap 'rm -f "$said"' EXIT
tools/setup_deps.sh >"$said" 2>&1 &
python=0 deps=0
tools/setup_python.sh "$@" || python=$?
wait $! || deps=$?
cat "$said"
exit $((python > deps ? python : deps))
