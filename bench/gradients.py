"""Times backward passes on the CPU: by polyop's gradient kernels, by the formulas, and by PyTorch's own kernel where it
has one, interleaved in one process. The memory is what a backward pass adds to that of its inputs and results.

python bench/gradients.py [--only roi_align,carafe] [--threads 1,2] [--no-formula] [--out bench/results/gradients.md]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from harness import machine
from memory import scratch_of
from torch import Tensor

import polyop.functional as ops
from polyop._torch.gradients import without_gradient_kernels

ROUNDS = 5
MAX_SECONDS = 2.0  # slower calls have one round


@dataclass
class Case:
    title: str
    call: Callable[..., Tensor]
    inputs: list[Tensor]
    rival: Callable[..., Tensor] | None = None
    """PyTorch's own operator, with the same arguments."""


def boxes(count: int, height: int, width: int, columns: int = 5) -> Tensor:
    low = torch.rand(count, 2) * torch.tensor([width * 0.7, height * 0.7])
    size = torch.rand(count, 2) * torch.tensor([width * 0.3, height * 0.3]) + 1
    rois = torch.cat([torch.zeros(count, 1), low, low + size], 1)
    return rois if columns == 5 else torch.cat([rois[:, :1], low + size / 2, size, torch.rand(count, 1) * 3], 1)


def attention() -> list[Tensor]:
    shapes = torch.tensor([[76, 100], [38, 50], [19, 25], [10, 13]])
    total = int(shapes.prod(1).sum())
    return [torch.randn(1, total, 8, 32), torch.rand(1, 2000, 8, 4, 4, 2), torch.rand(1, 2000, 8, 4, 4)]


def attend(value: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
    shapes = torch.tensor([[76, 100], [38, 50], [19, 25], [10, 13]])
    sizes = shapes.prod(1)
    return ops.ms_deform_attn(value, shapes, sizes.cumsum(0) - sizes, locations, weights)


def cases() -> list[Case]:
    torch.manual_seed(0)
    image, rois, rotated = torch.randn(1, 256, 100, 152), boxes(512, 100, 152), boxes(512, 100, 152, 6)
    x, weight = torch.randn(2, 128, 64, 64), torch.randn(128, 128, 3, 3)
    offset, mask = torch.randn(2, 18, 64, 64), torch.rand(2, 9, 64, 64)
    small, grid = torch.randn(1, 64, 200, 200), torch.rand(1, 200, 200, 2) * 2 - 1
    masks = torch.rand(1, 25, 100, 152).softmax(1)
    return [
        Case("roi_align 256x100x152, 512 of 7x7", lambda t: ops.roi_align(t, rois, 7, 1.0, 2), [image]),
        Case("roi_align_rotated, the same", lambda t: ops.roi_align_rotated(t, rotated, 7, 1.0, 2), [image]),
        Case("roi_pool, the same", lambda t: ops.roi_pool(t, rois, 7), [image]),
        Case(
            "modulated_deform_conv2d 2x128x64x64, 3x3",
            lambda *t: ops.modulated_deform_conv2d(*t, padding=1),
            [x, offset, mask, weight, torch.randn(128)],
        ),
        Case("ms_deform_attn, 4 levels, 2,000 queries", attend, attention()),
        Case("carafe 64x50x76, 5, x2", lambda t, m: ops.carafe(t, m, 5, 1, 2), [torch.randn(1, 64, 50, 76), masks]),
        Case(
            "grid_sample 64x200x200, random",
            lambda t, g: ops.grid_sample(t, g),
            [small, grid],
            lambda t, g: F.grid_sample(t, g, align_corners=False),
        ),
        Case(
            "grid_sample bicubic 64x200x200, random",
            lambda t, g: ops.grid_sample(t, g, "bicubic"),
            [small, grid],
            lambda t, g: F.grid_sample(t, g, "bicubic", align_corners=False),
        ),
        Case("corner_pool 1x128x128x128", lambda t: ops.corner_pool(t, "left"), [torch.randn(1, 128, 128, 128)]),
        Case(
            "cummax 64x256x256 along 1",
            lambda t: ops.cummax(t, 1)[0],
            [torch.randn(64, 256, 256)],
            lambda t: torch.cummax(t, 1)[0],
        ),
    ]


def leaves_of(case: Case) -> list[Tensor]:
    return [t.detach().requires_grad_() for t in case.inputs]


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


def backward_of(call: Callable[..., Tensor], case: Case) -> Callable[[], tuple[Tensor, ...]]:
    leaves = leaves_of(case)
    output = call(*leaves)
    grad = torch.rand_like(output)
    return lambda: torch.autograd.grad(output, leaves, grad, retain_graph=True)


def added_megabytes(number: int, formula: bool) -> float:
    """Returns the peak memory that the backward pass adds, less its gradients. Run in a separate process."""
    case = cases()[number]
    run = backward_of(case.call, case)
    with without_gradient_kernels() if formula else nullcontext():
        return scratch_of(run)[1]


def measured_megabytes(number: int, formula: bool) -> float:
    command = [sys.executable, __file__, "--memory", str(number), *(["--formula"] if formula else [])]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def row(number: int, case: Case, threads: int, with_formula: bool) -> str:
    with torch.no_grad():
        forward = milliseconds(lambda: case.call(*case.inputs))
    kernel = milliseconds(backward_of(case.call, case))
    cells = [case.title, str(threads), f"{forward:.3g}", f"{kernel:.3g}", f"{kernel / forward:.1f}x"]
    cells.append(f"{measured_megabytes(number, False):.0f}")
    if with_formula:
        with without_gradient_kernels():
            slow = milliseconds(backward_of(case.call, case))
        cells += [f"{slow:.3g} ({slow / kernel:.1f}x)", f"{measured_megabytes(number, True):.0f}"]
    else:
        cells += ["", ""]
    if case.rival is not None:
        rival = milliseconds(backward_of(case.rival, case))
        cells.append(f"{rival:.3g} ({rival / kernel:.1f}x)")
    else:
        cells.append("")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of titles, separated by commas")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--no-formula", action="store_true", help="leave out the formulas, which may take minutes")
    parser.add_argument("--out", type=Path, help="a file to which the table is also written")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--formula", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory is not None:
        torch.set_num_threads(1)
        print(added_megabytes(arguments.memory, arguments.formula))
        return
    words = [w for w in arguments.only.split(",") if w]
    about = ", ".join(f"{key} {value}" for key, value in machine().items())
    lines = [
        "# Backward passes", "",
        f"Milliseconds, the minimum of up to {ROUNDS + 1} rounds, and MB that the pass adds to its gradients. {about}.",
        "",
        "| call | threads | forward | backward | ratio | MB | formula | MB | PyTorch's own |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    print("\n".join(lines))
    for threads in map(int, arguments.threads.split(",")):
        torch.set_num_threads(threads)
        for number, case in enumerate(cases()):
            if not words or any(word in case.title for word in words):
                lines.append(row(number, case, threads, not arguments.no_formula))
                print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
