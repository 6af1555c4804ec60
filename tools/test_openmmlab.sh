#!/usr/bin/env bash
# test_openmmlab.sh [pytest options…]   OpenMMLab's packages, unpacked beside .venv, with polyop in the place of MMCV's
# compiled module: its functions; models of mmdet and mmdet3d found with, trained and exported, and those of others run.
# With a checkout of MMCV's repository in POLYOP_MMCV_SOURCE, MMCV's own tests of its operators, too.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
tools/setup.sh
tools/setup_python.sh openmmlab
tools/build.sh release
PATH="$VENV/bin:$PATH"
step "Testing OpenMMLab's packages" python -m pytest \
  tests/test_mmcv_ext*.py tests/test_deploy_openmmlab.py tests/openmmlab_packages.py "$@"
