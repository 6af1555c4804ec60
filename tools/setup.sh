#!/usr/bin/env bash
# setup.sh [demo]   all set-up, each part only if something is missing or its requirements changed; `demo`: without the
# Python packages that only tests and linters need, PyTorch the largest.
TOOLS="$(dirname "${BASH_SOURCE[0]}")"
set -e
"$TOOLS/setup_system.sh"
# Most of both is waiting, for downloads and for one core; what the second says comes after the first.
said="$(mktemp)"
trap 'rm -f "$said"' EXIT
"$TOOLS/setup_deps.sh" >"$said" 2>&1 &
python=0 deps=0
"$TOOLS/setup_python.sh" "$@" || python=$?
wait $! || deps=$?
cat "$said"
exit $((python > deps ? python : deps))
