# SPDX-License-Identifier: Apache-2.0
"""The checkout, and the environment variables of the child processes that tests start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent  # has this Python, cmake, ninja and the program `polyop`


def environment(*folders: str | Path, **variables: str) -> dict[str, str]:
    """Returns the environment of a child process: this process's environment with `variables` added.

    A Python in it searches `folders` first and then the checkout, so that `from tests.support import …` works there.
    The programs of this virtual environment come first in PATH.
    """
    python_path = [*map(str, folders), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(BIN), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(python_path),
        **variables,
    }


def run(*command: str | Path, **options) -> str:
    """Returns the command's stdout. Its output is part of the error if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def operator_folders() -> list[Path]:
    """Returns the folders of the operators: ops/<room>/<op>/, each with its definition <op>.h."""
    return sorted(folder for folder in ROOT.glob("ops/*/*/") if (folder / f"{folder.name}.h").exists())
