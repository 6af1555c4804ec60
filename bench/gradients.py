# SPDX-License-Identifier: Apache-2.0
"""Times backward passes on the CPU: by gradient kernels, by the formulas, by PyTorch's kernels, and by those of
gradient_rivals.py, interleaved in one process. The calls are those of gradient_cases.py. The gradients of others are
compared before the timing. The memory is what a backward pass adds to that of its inputs and results. Formulas are
called once, with the last number of threads. Prints tables in Markdown.

POLYOP_MMCV_SOURCE=mmcv POLYOP_TORCHVISION_SOURCE=vision python bench/gradients.py \\
    [--only roi_align,carafe] [--threads 1,2] [--no-formula] [--cpu-time] [--out TABLE.md]
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from gradient_cases import CASES, Call
from harness import machine
from memory import scratch_of
from torch import Tensor

from polyop._torch.gradients import without_gradient_kernels

ROUNDS = 6
MAX_SECONDS = 1.0  # a contender whose calls have taken longer is not called again
TOLERANCE = 2e-3  # mean difference, relative to the mean; where samples are nearly equal, other maxima may be chosen

Run = Callable[[], object]


def interleaved(runs: dict[str, Run], clock: Callable[[], float]) -> dict[str, float]:
    """Returns the minimum milliseconds of a call, because the machine may be shared. The contenders are interleaved, so
    that each starts with caches that hold the data of others, as in training.
    """
    best, spent = dict.fromkeys(runs, float("inf")), dict.fromkeys(runs, 0.0)
    for _ in range(ROUNDS + 1):
        for name, run in runs.items():
            if spent[name] > MAX_SECONDS:
                continue
            start = clock()
            run()
            took = clock() - start
            best[name], spent[name] = min(best[name], took), spent[name] + took
    return {name: seconds * 1e3 for name, seconds in best.items()}


def keep_memory() -> None:
    """Lets the C library keep freed memory, so that calls do not fault in the same pages again. Tensors of more than
    32 MiB still do.
    """
    trim_threshold, mmap_threshold = -1, -3  # parameters of mallopt
    libc = ctypes.CDLL(None)
    libc.mallopt(trim_threshold, 1 << 30)
    libc.mallopt(mmap_threshold, 1 << 25)


def warm_up() -> None:
    """Imports what PyTorch imports with the first backward pass, which takes seconds."""
    small = Call(lambda t: torch.ops.polyop.corner_pool(t, mode="left"), [torch.rand(1, 1, 2, 2)])
    backward_of(small.function, small.inputs)()
    with without_gradient_kernels():
        backward_of(small.function, small.inputs)()


def called(number: int) -> Call:
    torch.manual_seed(0)
    return CASES[number].make()


def backward_of(
    function: Callable[..., Tensor], inputs: Sequence[Tensor], grad: Tensor | None = None
) -> Callable[[], Sequence[Tensor]]:
    leaves = [t.detach().requires_grad_() for t in inputs]
    output = function(*leaves)
    given = torch.rand_like(output) if grad is None else grad
    return lambda: torch.autograd.grad(output, leaves, given, retain_graph=True, allow_unused=True)


def check(title: str, name: str, ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
    """Raises an exception if a contender gives other gradients, because its time would be meaningless."""
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        error, mean = float((a - b).abs().mean()), float(a.abs().mean())
        if not error <= TOLERANCE * mean:
            raise ValueError(
                f"{title}: gradient {i} of {name} differs by {error:.2g} on average, whose mean is {mean:.2g}"
            )


def row(number: int, threads: int, with_formula: bool, clock: Callable[[], float]) -> str:
    """Returns a row of the table."""
    case, call = CASES[number], called(number)
    with torch.no_grad():
        output = call.function(*call.inputs)
    grad = torch.rand_like(output)
    backward = backward_of(call.function, call.inputs, grad)
    ours = backward()
    added = scratch_of(backward)[1]

    def forward() -> None:
        with torch.no_grad():
            call.function(*call.inputs)

    others: dict[str, Run] = {}
    for name, function in call.rivals.items():
        others[name] = backward_of(function, call.inputs, grad)
    for name, loop in call.loops.items():
        others[name] = lambda loop=loop: loop(grad, *call.inputs)
    for name, run in others.items():
        check(case.title, name, ours, run())
    took = interleaved({"forward": forward, "backward": backward, **others}, clock)
    kernel = took["backward"]
    cells = [case.title, str(threads), f"{took['forward']:.3g}", f"{kernel:.3g}", f"{kernel / took['forward']:.1f}"]

    def compared(milliseconds: float | None) -> str:
        return "" if milliseconds is None else f"{milliseconds:.3g} ({milliseconds / kernel:.1f}x)"

    cells += [compared(took.get(name)) for name in ("MMCV", "torchvision", "PyTorch")]
    cells.append(f"{added:.0f}")
    if with_formula:
        with without_gradient_kernels():
            run = backward_of(call.function, call.inputs, grad)
            start = clock()
            added = scratch_of(run)[1]
            cells += [compared((clock() - start) * 1e3), f"{added:.0f}"]
    else:
        cells += ["", ""]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of titles, separated by commas")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--no-formula", action="store_true", help="leave out the formulas, which may take minutes")
    parser.add_argument("--cpu-time", action="store_true", help="measure the CPU time of all threads")
    parser.add_argument("--out", type=Path, help="a file to which the table is also written")
    arguments = parser.parse_args()
    keep_memory()
    warm_up()
    words = [w for w in arguments.only.split(",") if w]
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    about = ", ".join(f"{key} {value}" for key, value in machine().items())
    lines = [
        "# Backward passes", "",
        f"Milliseconds{' of CPU time' if arguments.cpu_time else ''}, the minimum of up to {ROUNDS + 1} rounds, and MB "
        f"that the pass adds to its gradients. {about}.",
        "",
        "| call | threads | forward | backward | ratio | MMCV | torchvision | PyTorch | MB | formula | MB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    print("\n".join(lines))
    numbers = [int(threads) for threads in arguments.threads.split(",")]
    for threads in numbers:
        torch.set_num_threads(threads)
        for number, case in enumerate(CASES):
            if not words or any(word in case.title for word in words):
                lines.append(row(number, threads, threads == numbers[-1] and not arguments.no_formula, clock))
                print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
