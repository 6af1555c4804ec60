#!/usr/bin/env bash
# setup.sh [demo]   all set-up, each part only if something is missing or its requirements changed; `demo`: without the
# Python packages that only tests and linters need, PyTorch the largest.
TOOLS="$(dirname "${BASH_SOURCE[0]}")"
set -e
"$TOOLS/setup_system.sh"
"$TOOLS/setup_python.sh" "$@"
"$TOOLS/setup_deps.sh"
