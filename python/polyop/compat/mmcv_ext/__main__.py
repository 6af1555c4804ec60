# SPDX-License-Identifier: Apache-2.0
"""`python -m polyop.compat.mmcv_ext` prints what provides each function; with --markdown for the documentation."""

import sys

from polyop.compat.mmcv_ext._status import markdown, status

if "--markdown" in sys.argv[1:]:
    print(markdown())
else:
    status()
