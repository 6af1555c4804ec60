#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench.sh [OPTION…]   benchmarks every operator against its rivals, in one process. Passes its options to bench/run.py,
# for example --only roi_align,nms.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept any $(options_of bench/run.py) -- "$@"
tools/setup.sh
tools/setup_python.sh bench
tools/build.sh release
exec "$VENV/bin/python" bench/run.py "$@"
