# SPDX-License-Identifier: Apache-2.0
"""Models that the program `polyop` runs in Python.

`python -m polyop._commands.MODULE REQUEST REPLY`, where REQUEST and REPLY are files of JSON (cli/python.h). The reply
is the result of the module. For an exception, it has the text as "error", the "hint", and the exit code as "code".
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyop._commands import terminal
from polyop._commands.errors import describe

if TYPE_CHECKING:
    import numpy as np


LAYER_RUNS = 10


def feeds_of(request: dict[str, Any]) -> dict[str, np.ndarray]:
    """Returns the arrays of the file "inputs"."""
    import numpy as np

    with np.load(request["inputs"]) as arrays:
        return dict(arrays)


def timed_runs(run: Callable[[], object], request: dict[str, Any]) -> list[float]:
    """Runs a model "warmup" times, and then at least "repeat" times and until the sum of the times is "seconds" (Timing
    in cli/timing.h). Returns the seconds of the runs after the warm-up."""
    for _ in range(request["warmup"]):
        run()
    times: list[float] = []
    while len(times) < request["repeat"] or sum(times) < request["seconds"]:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]], needs: str) -> None:
    """Answers the request of the command line. `needs` is the hint about a missing package."""
    terminal.escape_output()
    request, reply = map(Path, sys.argv[1:])
    try:
        result = json.dumps(answer(json.loads(request.read_text())))
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get("POLYOP_DEBUG") == "1":
            traceback.print_exc()
        description = describe(error, needs)
        result = json.dumps({"error": description.message, "hint": description.hint, "code": int(description.code)})
    reply.write_text(result)
