#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh [OPTION…]   the demonstration: installs and builds what it needs, then runs models/demo.py with the options.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept any $(options_of models/demo.py) -- "$@"
tools/setup.sh demo
tools/build.sh demonstration polyop polyop_onnxruntime
exec "$VENV/bin/python" models/demo.py --polyop build/demonstration/bin/polyop "$@"
