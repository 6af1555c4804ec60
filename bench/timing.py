# SPDX-License-Identifier: Apache-2.0
"""The loop that times contenders, interleaved."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Run = Callable[[], Any]
LONGEST = 8.0


def once(run: Run, clock: Callable[[], float] = time.perf_counter) -> float:
    """Returns the seconds of a call."""
    start = clock()
    run()
    return clock() - start


def interleaved(
    runs: Mapping[str, Run],
    seconds: float,
    rounds: int = 15,
    least: int = 3,
    turn: float = 0,
    took: Callable[[Run], float] = once,
    around: Callable[[str], AbstractContextManager[Any]] = lambda _: nullcontext(),
) -> dict[str, list[float]]:
    """Returns samples of each contender's milliseconds a call. The contenders take turns, so that a change of the
    machine's speed affects all of them. The first call is a warm-up, and the only sample if it takes more than LONGEST
    seconds. A contender whose turns have taken its share of `seconds` has fewer than `rounds`, but at least `least`.

    A turn is a call, whose caches hold the data of others. With `turn` it is as many calls as fit into these seconds,
    after one that is not timed. `took` returns the seconds of a call, and `around` the context of a contender's turn.
    """
    samples: dict[str, list[float]] = {name: [] for name in runs}
    repeats, spent = dict.fromkeys(runs, 1), dict.fromkeys(runs, 0.0)
    left = dict.fromkeys(runs, rounds)
    for name, run in runs.items():
        with around(name):
            first = took(run)
            if first > LONGEST:
                samples[name], left[name] = [first * 1e3], 0
            elif turn:
                repeats[name] = max(1, int(turn / max(took(run), 1e-7)))

    def repeat(name: str) -> Run:
        run, times = runs[name], range(repeats[name])

        def calls() -> None:
            for _ in times:
                run()

        return run if len(times) == 1 else calls

    turns = {name: repeat(name) for name in runs}
    gc.disable()
    try:
        while any(left.values()):
            for name in [name for name in runs if left[name]]:
                start = time.perf_counter()
                with around(name):
                    if turn:
                        runs[name]()
                    samples[name].append(took(turns[name]) / repeats[name] * 1e3)
                spent[name] += time.perf_counter() - start
                enough = len(samples[name]) >= least and spent[name] > seconds / len(runs)
                left[name] = 0 if enough else left[name] - 1
    finally:
        gc.enable()
    return samples
