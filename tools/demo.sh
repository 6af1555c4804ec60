#!/usr/bin/env bash
# The demonstration: set-up and build of what it runs, then models/demo.py.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/setup.sh demo
tools/build.sh demonstration polyop polyop_onnxruntime
exec "$VENV/bin/python" models/demo.py --polyop build/demonstration/bin/polyop "$@"
