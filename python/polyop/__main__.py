# SPDX-License-Identifier: Apache-2.0
"""The command line: `python -m polyop COMMAND …`."""

from __future__ import annotations

import sys


def _run() -> int:
    try:
        from polyop._commands import interrupts

        interrupts.raise_once()
        from polyop._commands.main import main

        return main()
    except KeyboardInterrupt:  # before `main` handles it
        print("polyop: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(_run())
