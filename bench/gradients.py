"""Times backward passes on the CPU: by polyop's gradient kernels, by the formulas, and by PyTorch's and torchvision's
kernels, in one process. The memory is what a backward pass adds to that of its inputs and results. The calls are those
of gradient_cases.py.

python bench/gradients.py [--only roi_align,carafe] [--threads 1,2] [--no-formula] [--no-memory] [--out TABLE.md]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch
from gradient_cases import CASES, Call
from harness import machine
from memory import scratch_of
from torch import Tensor

from polyop._torch.gradients import without_gradient_kernels

ROUNDS = 5
MAX_SECONDS = 2.0  # slower calls have one round


def milliseconds(run: Callable[[], object]) -> float:
    """Returns the minimum time of a call, because the machine may be shared."""
    best, spent = float("inf"), 0.0
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
        if spent > MAX_SECONDS:
            break
    return best * 1e3


def warm_up() -> None:
    """Imports what PyTorch imports with the first backward pass, which takes seconds."""
    small = Call(lambda t: torch.ops.polyop.corner_pool(t, mode="left"), [torch.rand(1, 1, 2, 2)])
    backward_of(small.function, small)()
    with without_gradient_kernels():
        backward_of(small.function, small)()


def called(number: int) -> Call:
    torch.manual_seed(0)
    return CASES[number].make()


def backward_of(function: Callable[..., Tensor], call: Call) -> Callable[[], tuple[Tensor, ...]]:
    leaves = [t.detach().requires_grad_() for t in call.inputs]
    output = function(*leaves)
    grad = torch.rand_like(output)
    return lambda: torch.autograd.grad(output, leaves, grad, retain_graph=True, allow_unused=True)


def added_megabytes(number: int, formula: bool) -> float:
    """Returns the peak memory that the backward pass adds, less its gradients. Run in a separate process."""
    call = called(number)
    run = backward_of(call.function, call)
    with without_gradient_kernels() if formula else nullcontext():
        return scratch_of(run)[1]


def measured_megabytes(number: int, formula: bool) -> float:
    command = [sys.executable, __file__, "--memory", str(number), *(["--formula"] if formula else [])]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def row(number: int, threads: int, with_formula: bool, with_memory: bool) -> str:
    call = called(number)
    with torch.no_grad():
        forward = milliseconds(lambda: call.function(*call.inputs))
    kernel = milliseconds(backward_of(call.function, call))
    cells = [CASES[number].title, str(threads), f"{forward:.3g}", f"{kernel:.3g}", f"{kernel / forward:.1f}x"]
    cells.append(f"{measured_megabytes(number, False):.0f}" if with_memory else "")
    if with_formula:
        with without_gradient_kernels():
            slow = milliseconds(backward_of(call.function, call))
        cells += [
            f"{slow:.3g} ({slow / kernel:.1f}x)",
            f"{measured_megabytes(number, True):.0f}" if with_memory else "",
        ]
    else:
        cells += ["", ""]
    rivals = []
    for name, function in call.rivals.items():
        rival = milliseconds(backward_of(function, call))
        rivals.append(f"{name} {rival:.3g} ({rival / kernel:.1f}x)")
    return f"| {' | '.join([*cells, ', '.join(rivals)])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of titles, separated by commas")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--no-formula", action="store_true", help="leave out the formulas, which may take minutes")
    parser.add_argument("--no-memory", action="store_true", help="leave out the memory, which takes further processes")
    parser.add_argument("--out", type=Path, help="a file to which the table is also written")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--formula", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory is not None:
        torch.set_num_threads(1)
        print(added_megabytes(arguments.memory, arguments.formula))
        return
    warm_up()
    words = [w for w in arguments.only.split(",") if w]
    about = ", ".join(f"{key} {value}" for key, value in machine().items())
    lines = [
        "# Backward passes", "",
        f"Milliseconds, the minimum of up to {ROUNDS + 1} rounds, and MB that the pass adds to its gradients. {about}.",
        "",
        "| call | threads | forward | backward | ratio | MB | formula | MB | others |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    print("\n".join(lines))
    for threads in map(int, arguments.threads.split(",")):
        torch.set_num_threads(threads)
        for number, case in enumerate(CASES):
            if not words or any(word in case.title for word in words):
                lines.append(row(number, threads, not arguments.no_formula, not arguments.no_memory))
                print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
