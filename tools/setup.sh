#!/usr/bin/env bash
# All set-up, each part only if something is missing or its requirements changed.
TOOLS="$(dirname "${BASH_SOURCE[0]}")"
set -e
"$TOOLS/setup_system.sh"
"$TOOLS/setup_python.sh"
"$TOOLS/setup_deps.sh"
