#!/usr/bin/env bash
# Every operator beside its rivals, in one process. Arguments go to bench/run.py, e.g. --only roi_align,nms
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/setup.sh
tools/setup_python.sh bench
tools/build.sh release
exec "$VENV/bin/python" bench/run.py "$@"
