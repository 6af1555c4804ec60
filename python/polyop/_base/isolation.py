# SPDX-License-Identifier: Apache-2.0
"""Keeps modules of the current folder out of commands: a model's folder may have a file json.py.

polyop/__init__.py imports this module before all others. The program `polyop` starts Python without the current folder
(cli/python.cc). `python -m polyop`, which users type, begins with it: Python itself then finds `polyop` and a few
modules of its own there, before this module can remove it.
"""

from __future__ import annotations

import sys

_START = (
    "import sys; sys.path[:] = [p or sys.executable for p in sys.path]; import runpy; del sys.argv[0]; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
"""As in cli/python.cc."""


def command(module: str, *arguments: str) -> list[str]:
    """Returns the command that runs a module in this Python like `-m`, without the current folder. `-P` would do so
    from Python 3.11 on."""
    return [sys.executable, "-c", _START, module, *arguments]


def _runs_command() -> bool:
    """Returns True while Python looks for the module of `python -m polyop`."""
    if sys.argv[:1] != ["-m"]:
        return False
    words = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv) + 1]
    return bool(words) and (words[-1] in ("polyop", "-mpolyop") or words[-1].startswith("polyop._"))


if _runs_command() and not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated):
    sys.path[0] = sys.executable  # no folder; OpenCV expects that what it is imported from is not the first entry
