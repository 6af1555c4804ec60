# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C: a command ends with one line, exit code 130 and no temporary files."""

from __future__ import annotations

import signal
from types import FrameType

_signals: list[int] = []


def raise_once() -> None:
    """Makes the first Ctrl-C raise KeyboardInterrupt, and others not disturb the removal of temporary files."""

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _signals.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)


def cause(error: BaseException) -> BaseException:
    """Returns the error, or KeyboardInterrupt if that is what ended the command: a library that is interrupted while it
    is loaded raises ImportError."""
    return KeyboardInterrupt() if _signals and isinstance(error, ImportError) else error
