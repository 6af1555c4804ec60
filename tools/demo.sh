#!/usr/bin/env bash
# The demonstration: set-up, build, then models/demo.py.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/setup.sh
tools/build.sh release
exec "$VENV/bin/python" models/demo.py "$@"
