# SPDX-License-Identifier: Apache-2.0
"""`python -m polyop.compat SCRIPT ARGUMENTS…` runs a script with polyop in place of packages that do not load.

`-m MODULE ARGUMENTS…` runs a module. Without arguments it prints which modules polyop would replace, and why they do
not load; `polyop doctor` prints more.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from polyop.compat import REPLACEMENTS, install


def _print_status() -> None:
    width = max(map(len, REPLACEMENTS))
    for replacement in REPLACEMENTS.values():
        if not replacement.is_applicable():
            state = f"{replacement.package} is not installed"
        elif (why := replacement.failure()) is not None:
            state = f"polyop replaces it: {why}"
        else:
            state = "is installed and loads: kept"
        print(f"{replacement.name:{width}} {state}")


def main(arguments: list[str]) -> None:
    if not arguments:
        _print_status()
        return
    if arguments[0] in ("-h", "--help"):
        print(__doc__)
        return
    module = arguments[0] == "-m"
    target = arguments[1:] if module else arguments
    if not target or (not module and not Path(target[0]).is_file()):
        what = "a module after -m" if module else f"a file, got {target[0]!r}"
        raise SystemExit(f"polyop.compat: expected {what}")
    print(f"polyop replaces: {', '.join(install()) or 'nothing'}", file=sys.stderr)
    sys.argv = target
    if module:
        runpy.run_module(target[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(target[0]).resolve().parent))
        runpy.run_path(target[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
