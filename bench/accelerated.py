# SPDX-License-Identifier: Apache-2.0
"""Times PyTorch's operators on the CPU, and torchvision's where it is installed, with and without polyop.accelerate(),
interleaved in one process.

python bench/accelerated.py [--only cummax,bicubic] [--threads 1,2] [--out bench/results/accelerated.md]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from harness import machine
from timing import interleaved

import polyop

ROUNDS = 15
MIN_ROUNDS = 3
SECONDS_A_TURN = 0.02
SECONDS_A_CASE = 5.0  # slow ones have fewer rounds


@dataclass
class Case:
    title: str
    run: Callable[[], object]


def grid(batch: int, channels: int, height: int, width: int, mode: str, kind: str) -> Case:
    x = torch.randn(batch, channels, height, width)
    if kind == "smooth":
        turn = torch.tensor([[[0.9, 0.2, 0.05], [-0.2, 0.9, 0.0]]]).repeat(batch, 1, 1)
        points = F.affine_grid(turn, list(x.shape), align_corners=False)
    else:
        points = torch.rand(batch, height, width, 2) * 2 - 1
    title = f"grid_sample {mode}, {batch}x{channels}x{height}x{width}, {kind}"
    return Case(title, lambda: F.grid_sample(x, points, mode, align_corners=False))


def volume(channels: int, *extents: int) -> Case:
    x, points = torch.randn(1, channels, *extents), torch.rand(1, *extents, 3) * 2 - 1
    title = f"grid_sample trilinear, 1x{channels}x{'x'.join(map(str, extents))}"
    return Case(title, lambda: F.grid_sample(x, points, align_corners=False))


def bicubic(batch: int, channels: int, height: int, width: int, scale: float, last: bool = False) -> Case:
    x = torch.randn(batch, channels, height, width)
    x = x.to(memory_format=torch.channels_last) if last else x
    title = f"interpolate bicubic x{scale:g}, {batch}x{channels}x{height}x{width}{', channels last' if last else ''}"
    return Case(title, lambda: F.interpolate(x, scale_factor=scale, mode="bicubic"))


def cumulative(function: Callable, dim: int, *shape: int) -> Case:
    x = torch.randn(shape)
    return Case(f"{function.__name__}, {'x'.join(map(str, shape))}, dim {dim}", lambda: function(x, dim))


def instance_norm(*shape: int) -> Case:
    x, weight, bias = torch.randn(shape), torch.randn(shape[1]), torch.randn(shape[1])
    return Case(f"instance_norm, {'x'.join(map(str, shape))}", lambda: F.instance_norm(x, weight=weight, bias=bias))


def boxes(count: int) -> torch.Tensor:
    """Returns boxes in an image of 800 x 1216."""
    corner = torch.rand(count, 2) * torch.tensor([1000.0, 600.0])
    return torch.cat([corner, corner + 10 + torch.rand(count, 2) * 200], 1)


def of_torchvision() -> list[Case]:
    """Returns None where torchvision, or its compiled part for this PyTorch, is missing."""
    try:
        from torchvision.ops import deform_conv2d, nms, roi_align
    except (ImportError, RuntimeError) as error:  # RuntimeError: without its compiled part
        print(f"torchvision's operators are left out: {error}\n")
        return []
    x, rois = torch.randn(1, 256, 200, 304), [boxes(1000)]
    image, weight, offset = torch.randn(1, 256, 64, 64), torch.randn(256, 256, 3, 3), torch.randn(1, 18, 64, 64)
    some = [(boxes(count), torch.randperm(count) / count) for count in (1000, 10000)]
    return [
        Case("torchvision roi_align, 256x200x304, 1,000 boxes, 7x7", lambda: roi_align(x, rois, 7, 0.25, 2, True)),
        *(Case(f"torchvision nms, {len(b):,} boxes", lambda b=b, s=s: nms(b, s, 0.5)) for b, s in some),
        Case(
            "torchvision deform_conv2d, 256x64x64, 256 filters 3x3",
            lambda: deform_conv2d(image, offset, weight, padding=1),
        ),
    ]


CASES = [
    *(
        grid(1, 64, 256, 256, mode, kind)
        for mode in ("bilinear", "nearest", "bicubic")
        for kind in ("smooth", "random")
    ),
    *(grid(1, 64, 32, 32, mode, "random") for mode in ("bilinear", "nearest", "bicubic")),
    *(grid(1, 16, 32, 32, mode, "random") for mode in ("bilinear", "nearest", "bicubic")),
    *(grid(1, 4, 128, 128, mode, kind) for mode in ("bilinear", "nearest", "bicubic") for kind in ("smooth", "random")),
    grid(1, 3, 256, 256, "bilinear", "random"),
    volume(16, 32, 64, 64),
    volume(2, 8, 16, 16),
    volume(1, 4, 4, 4),
    bicubic(1, 3, 360, 640, 2),
    bicubic(1, 3, 360, 640, 2, last=True),
    bicubic(1, 64, 64, 64, 2),
    bicubic(1, 64, 64, 64, 2, last=True),
    bicubic(8, 3, 224, 224, 0.5),
    bicubic(1, 1, 16, 16, 2),
    *(cumulative(torch.cummax, dim, 64, 512, 512) for dim in range(3)),
    *(cumulative(torch.cummin, dim, 64, 64, 64) for dim in range(3)),
    *(cumulative(torch.cummax, dim, 16, 32, 32) for dim in range(3)),
    cumulative(torch.cummax, 0, 100),
    instance_norm(1, 64, 512, 512),
    instance_norm(8, 64, 64, 64),
    instance_norm(1, 16, 32, 32),
    instance_norm(1, 8, 8, 8),
]


def milliseconds(case: Case) -> dict[bool, float]:
    """Returns the minimum time of a call without and with acceleration, because the machine may be shared."""
    runs = dict.fromkeys((False, True), case.run)
    samples = interleaved(runs, SECONDS_A_CASE, ROUNDS, MIN_ROUNDS, SECONDS_A_TURN, around=polyop.accelerate)
    return {on: min(times) for on, times in samples.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="words of titles, separated by commas")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--out", type=Path, help="a file to which the table is also written")
    arguments = parser.parse_args()
    words = [w for w in arguments.only.split(",") if w]
    about = ", ".join(f"{key} {value}" for key, value in machine().items())
    lines = [
        "# PyTorch with polyop.accelerate()",
        "",
        f"Milliseconds a call, the minimum of {MIN_ROUNDS} to {ROUNDS} rounds. {about}.",
        "",
        "| call | threads | PyTorch | accelerated | ratio |",
        "| --- | --- | --- | --- | --- |",
    ]
    cases = [*CASES, *of_torchvision()]
    print("\n".join(lines))
    for threads in map(int, arguments.threads.split(",")):
        torch.set_num_threads(threads)
        for case in cases:
            if words and not any(w in case.title for w in words):
                continue
            with torch.no_grad():
                took = milliseconds(case)
            times = f"{took[False]:.3g} | {took[True]:.3g} | {took[False] / took[True]:.2f}x"
            lines.append(f"| {case.title} | {threads} | {times} |")
            print(lines[-1], flush=True)
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
