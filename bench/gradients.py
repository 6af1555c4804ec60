# SPDX-License-Identifier: Apache-2.0
"""Times backward passes on the CPU: by gradient kernels, by the formulas, by PyTorch's kernels, and by those of
projects.py, interleaved in one process. The gradients of others are compared before the timing. The memory is what a
backward pass adds to that of its inputs and results. Formulas are called once, with the last number of threads. Prints
tables in Markdown.

POLYOP_MMCV_SOURCE=mmcv POLYOP_TORCHVISION_SOURCE=vision python bench/gradients.py \\
    [--only roi_align,carafe] [--threads 1,2] [--no-formula] [--cpu-time] [--out TABLE.md]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from benchmark import Call, Case, Run, backward_of, cases, derivative, selected
from harness import machine
from memory import keep_memory, scratch_of
from timing import interleaved, once
from torch import Tensor

from polyop._torch.gradients import without_gradient_kernels

ROUNDS = 6
SECONDS = 4.0  # for all contenders of a row
TOLERANCE = 2e-3  # mean difference, relative to the mean; where samples are nearly equal, other maxima may be chosen


def warm_up() -> None:
    """Imports what PyTorch imports with the first backward pass, which takes seconds."""
    small = Call(lambda t: torch.ops.polyop.corner_pool(t, mode="left"), [torch.rand(1, 1, 2, 2)])
    backward_of(small).ours()
    with without_gradient_kernels():
        backward_of(small).ours()


def check(title: str, name: str, ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
    """Raises an exception if a contender gives other gradients, because its time would be meaningless."""
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        error, mean = float((a - b).abs().mean()), float(a.abs().mean())
        if not error <= TOLERANCE * mean:
            raise ValueError(
                f"{title}: gradient {i} of {name} differs by {error:.2g} on average, whose mean is {mean:.2g}"
            )


def row(case: Case, threads: int, with_formula: bool, clock: Callable[[], float]) -> str:
    """Returns a row of the table."""
    torch.manual_seed(0)
    call: Call = case.make()

    def forward() -> Tensor:
        with torch.no_grad():
            return call.function(*call.inputs)

    grad = torch.rand_like(forward())
    contest = backward_of(call, grad)
    ours = contest.ours()
    added = scratch_of(contest.ours)[1]
    for name, run in contest.rivals.items():
        check(case.title, name, ours, run())
    runs: dict[str, Run] = {"forward": forward, "backward": contest.ours, **contest.rivals}
    samples = interleaved(runs, SECONDS, ROUNDS, least=1, took=partial(once, clock=clock))
    took = {name: min(times) for name, times in samples.items()}
    kernel = took["backward"]
    cells = [case.title, str(threads), f"{took['forward']:.3g}", f"{kernel:.3g}", f"{kernel / took['forward']:.1f}"]

    def compared(milliseconds: float | None) -> str:
        return "" if milliseconds is None else f"{milliseconds:.3g} ({milliseconds / kernel:.1f}x)"

    cells += [compared(took.get(name)) for name in ("MMCV", "torchvision", "torch")]
    cells.append(f"{added:.0f}")
    if with_formula:
        with without_gradient_kernels():
            run = derivative(call.function, call.inputs, grad)
            start = clock()
            added = scratch_of(run)[1]
            cells += [compared((clock() - start) * 1e3), f"{added:.0f}"]
    else:
        cells += ["", ""]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of operators and titles, separated by commas")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--no-formula", action="store_true", help="leave out the formulas, which may take minutes")
    parser.add_argument("--cpu-time", action="store_true", help="measure the CPU time of all threads")
    parser.add_argument("--out", type=Path, help="a file to which the table is also written")
    arguments = parser.parse_args()
    keep_memory()
    warm_up()
    chosen = selected(cases("gradient"), arguments.only)
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    about = ", ".join(f"{key} {value}" for key, value in machine().items())
    lines = [
        "# Backward passes",
        "",
        f"Milliseconds{' of CPU time' if arguments.cpu_time else ''}, the minimum of up to {ROUNDS} rounds, and MB "
        f"that the pass adds to its gradients. {about}.",
        "",
        "| call | threads | forward | backward | ratio | MMCV | torchvision | PyTorch | MB | formula | MB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    print("\n".join(lines))
    numbers = [int(threads) for threads in arguments.threads.split(",")]
    for threads in numbers:
        torch.set_num_threads(threads)
        for case in chosen:
            lines.append(row(case, threads, threads == numbers[-1] and not arguments.no_formula, clock))
            print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
