"""`python -m polyop.compat.mmcv_ext` prints what does what; with --markdown as the documentation has it."""

import sys

from polyop.compat.mmcv_ext._status import markdown, status

if "--markdown" in sys.argv[1:]:
    print(markdown())
else:
    status()
