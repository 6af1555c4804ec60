# SPDX-License-Identifier: Apache-2.0
"""Progress bars on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack


def bars(stack: ExitStack) -> Callable[[str, int, int], bool] | None:
    """Returns a function of (phase, steps done, all steps) that draws a bar for each phase until `stack` closes, and
    returns True. Returns None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        return None
    from rich.console import Console
    from rich.progress import Progress, TaskID

    shown = stack.enter_context(Progress(console=Console(file=sys.__stderr__), transient=True))
    tasks: dict[str, TaskID] = {}

    def step(phase: str, done: int, steps: int) -> bool:
        if phase not in tasks:
            tasks[phase] = shown.add_task(phase, total=steps)
        shown.update(tasks[phase], completed=done, total=steps)
        return True

    return step
