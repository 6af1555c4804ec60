# SPDX-License-Identifier: Apache-2.0
"""Measures from which size on `polyop optimize`'s replacements of several nodes pay off: each pattern at growing sizes,
before and after, interleaved. The results are in python/polyop/optimizing/cost.py.

python bench/min_work.py [--only bicubic] [--threads 1]
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torchvision_models import torchvision

from polyop.optimizing import optimize

Tensors = dict[str, Tensor]


class Call(nn.Module):
    """A function of tensors, after a multiplication, so that its inputs are not constants."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Tensor:
        return self.function(tensors[0] * 1.5, *tensors[1:])


@dataclass
class Case:
    pattern: str
    function: Callable[..., Tensor]
    sizes: list[Tensors]


def instance_norm(x: Tensor) -> Tensor:
    centred = x - x.mean((2, 3), keepdim=True)
    return centred / ((centred * centred).mean((2, 3), keepdim=True) + 1e-5).sqrt()


def corner_pool(x: Tensor) -> Tensor:
    """Corner pooling as a loop over rows."""
    rows = [x[:, :, 0]]
    for i in range(1, x.shape[2]):
        rows.append(torch.maximum(rows[-1], x[:, :, i]))
    return torch.stack(rows, 2)


def doubled_corner_pool(x: Tensor) -> Tensor:
    step = 1
    while step < x.shape[2]:
        x = torch.cat([x[:, :, :step], torch.maximum(x[:, :, step:], x[:, :, :-step])], 2)
        step *= 2
    return x


def grid_sample(x: Tensor, grid: Tensor) -> Tensor:
    """MMCV's grid sampling in plain torch."""
    n, c, h, w = x.shape
    at = [((grid[..., i] + 1) * extent - 1) / 2 for i, extent in enumerate((w, h))]
    left, top = (v.reshape(n, -1).floor() for v in at)
    right_share, low_share = (v.reshape(n, -1) - first for v, first in zip(at, (left, top), strict=True))
    flat = F.pad(x, [1, 1, 1, 1]).reshape(n, c, -1)

    def corner(right: int, low: int) -> Tensor:
        column = (left.long() + right + 1).clamp(0, w + 1)
        row = (top.long() + low + 1).clamp(0, h + 1)
        index = (row * (w + 2) + column).unsqueeze(1).expand(-1, c, -1)
        share = (right_share if right else 1 - right_share) * (low_share if low else 1 - low_share)
        return flat.gather(2, index) * share.unsqueeze(1)

    total = corner(0, 0) + corner(1, 0) + corner(0, 1) + corner(1, 1)
    return total.reshape(n, c, grid.shape[1], grid.shape[2])


def bicubic(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2, mode="bicubic")


def multi_level(boxes: Tensor, *maps: Tensor) -> Tensor:
    size = [(maps[0].shape[2] * 4, maps[0].shape[3] * 4)]
    pool = torchvision().ops.MultiScaleRoIAlign([str(i) for i in range(len(maps))], 7, 2)
    return pool({str(i): m for i, m in enumerate(maps)}, [boxes], size)


def images(*shapes: tuple[int, int, int]) -> list[Tensors]:
    return [{"x": torch.randn(1, *shape)} for shape in shapes]


def pyramids(*counts: int, size: int = 256, channels: int = 32) -> Iterator[Tensors]:
    for count in counts:
        corner = torch.rand(count, 2) * size / 2
        sides = 2 ** (4 + 4 * torch.rand(count, 2))
        maps = {f"x{i}": torch.randn(1, channels, size >> (2 + i), size >> (2 + i)) for i in range(3)}
        yield {"boxes": torch.cat([corner, corner + sides], 1), **maps}


SMALL = [(1, 4, 4), (2, 8, 8), (4, 16, 16), (8, 32, 32), (16, 64, 64)]
CASES = [
    Case("instance normalisation", instance_norm, images(*SMALL)),
    Case("corner pooling", corner_pool, images(*SMALL)),
    Case("corner pooling", doubled_corner_pool, images(*SMALL)),
    Case(
        "grid sampling",
        grid_sample,
        [{**x, "grid": torch.rand(1, *x["x"].shape[2:], 2) * 2 - 1} for x in images(*SMALL)],
    ),
    Case("bicubic resize", bicubic, images(*SMALL)),
    Case("multi-level RoIAlign", multi_level, [*pyramids(1, 10, 100), *pyramids(1, 10, 100, size=1024, channels=64)]),
]


def exported(case: Case, given: Tensors, path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Call(case.function).eval(), tuple(given.values()), str(path), input_names=list(given), opset_version=18,
            dynamo=False, verbose=False,
        )  # fmt: skip
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a part of the pattern's name")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(0)
    print("pattern | written as | inputs | elements of the result | before, us | after, us | ratio")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            for given in case.sizes if options.only in case.pattern else ():
                path = exported(case, given, Path(folder) / "model.onnx")
                arrays = {name: tensor.numpy() for name, tensor in given.items()}
                report = optimize(path, inputs=arrays, all=True, measure=True, threads=options.threads)
                (finding,) = [f for f in report.findings if f.pattern == case.pattern and f.replaced]
                with torch.no_grad():
                    elements = prod(Call(case.function)(*given.values()).shape)
                shapes = ", ".join("x".join(map(str, t.shape)) for t in given.values())
                times = (
                    f"{finding.before * 1e6:.0f} | {finding.after * 1e6:.0f} | {finding.before / finding.after:.2f}x"
                )
                print(f"{case.pattern} | {case.function.__name__} | {shapes} | {elements} | {times}", flush=True)


if __name__ == "__main__":
    main()
