#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_openmmlab.sh [PYTEST OPTION…]   tests OpenMMLab's packages with polyop instead of MMCV's compiled module: its
# functions, inference, training and export of models of mmdet and mmdet3d, and inference of the other packages' models.
# If POLYOP_MMCV_SOURCE is a checkout of MMCV's repository, also runs MMCV's own tests of its operators.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
accept_pytest_options "$@"
tools/setup.sh
tools/setup_python.sh openmmlab
tools/build.sh release
PATH="$VENV/bin:$PATH"
step "Testing OpenMMLab's packages" python -m pytest \
  tests/compat/test_mmcv_ext*.py tests/compat/test_deploy_openmmlab.py tests/compat/openmmlab_packages.py "$@"
