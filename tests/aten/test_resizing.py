# SPDX-License-Identifier: Apache-2.0
"""torch.nn.functional.interpolate in ONNX files: all modes, by size and by factor, of odd sizes, up and down. Grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from tests.support.exported_calls import check

SHAPES = {1: (2, 3, 13), 2: (2, 3, 13, 9), 3: (1, 2, 7, 5, 9)}
AXES = {
    "nearest": (1, 2, 3), "nearest-exact": (1, 2, 3), "area": (1, 2, 3), "linear": (1,), "bilinear": (2,),
    "bicubic": (2,), "trilinear": (3,), "lanczos": (2,),
}  # fmt: skip
CASES = [(mode, axes) for mode, found in AXES.items() for axes in found]


def _random(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def _ways(mode: str, axes: int) -> Iterator[dict[str, Any]]:
    """Yields the arguments of every call of a mode."""
    factors = (0.37, 0.5, 0.6, 1.7, 2.0, 2.6, 3.3, (0.7, 1.9, 1.3)[:axes])
    sizes = [{"size": size} for size in (1, 5, 13, 29)]
    by_factor = [{"scale_factor": f, "recompute_scale_factor": r} for f in factors for r in (None, True)]
    for how in [*sizes, *by_factor]:
        for align in (None, True) if "linear" in mode or mode == "bicubic" else (None,):
            for antialias in {"bilinear": (False, True), "bicubic": (False, True), "lanczos": (True,)}.get(
                mode, (False,)
            ):
                yield {"mode": mode, "align_corners": align, "antialias": antialias, **how}


def _resized(mode: str, axes: int, every: bool = False) -> Callable[[torch.Tensor], list[torch.Tensor]]:
    """Returns a function that resizes in every way, or in a sample of them, which has all values of each argument."""
    ways = list(_ways(mode, axes))
    if not every:
        ways = ways[:: 7 if len(ways) > 40 else 3]
    return lambda x: [F.interpolate(x, **way) for way in ways]


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("mode", "axes"), CASES)
def test_fixed_sizes(mode: str, axes: int, every: bool) -> None:
    check(_resized(mode, axes, every), _random(*SHAPES[axes]), rtol=1e-4, atol=1e-4)


@pytest.mark.slow  # minutes for each mode
@pytest.mark.parametrize(("mode", "axes"), CASES)
def test_dynamic_sizes(mode: str, axes: int) -> None:
    x, other = (
        _random(*SHAPES[axes]),
        _random(*SHAPES[axes][:2], *(size + 4 + i for i, size in enumerate(SHAPES[axes][2:]))),
    )
    dynamic = [tuple(range(2, axes + 2))]
    check(_resized(mode, axes), x, others=[(other,)], dynamic=dynamic, rtol=1e-4, atol=1e-4)


def test_windows_of_sizes_that_depend_on_the_input() -> None:
    def call(x: torch.Tensor) -> list[Any]:
        half, third = x.shape[2] // 2, x.shape[2] // 3
        return [
            F.interpolate(x, scale_factor=0.5, mode="area"),
            F.interpolate(x, scale_factor=2.6, mode="area"),
            F.adaptive_avg_pool1d(x, half),
            F.adaptive_max_pool1d(x, half),
            F.adaptive_max_pool2d(x, (2, third)),
            F.adaptive_max_pool3d(x[None], (2, 2, third)),
            F.adaptive_max_pool2d(x, (2, None)),
        ]

    others = [(_random(2, 3, size),) for size in (17, 9)]
    check(call, _random(2, 3, 13), others=others, dynamic=[(2,)], rtol=1e-4, atol=1e-4)


def test_antialiased_pixels_between_corners_that_become_one() -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        size = (x.shape[2] // 3 + 1, x.shape[3])
        return F.interpolate(x, size, mode="bilinear", align_corners=True, antialias=True)

    check(
        call, _random(1, 2, 23, 9), others=[(_random(1, 2, size, 7),) for size in (2, 1)], dynamic=[(2, 3)], atol=1e-5
    )


def test_bytes() -> None:
    """PyTorch rounds the weights, the rows and the columns."""

    def image(*sizes: int) -> torch.Tensor:
        return (_random(1, 3, *sizes) * 256).to(torch.uint8)

    bilinear = lambda x: F.interpolate(x, scale_factor=1.1, mode="bilinear")  # noqa: E731
    check(bilinear, image(23, 7), others=[(image(9, 7),), (image(100, 7),)], dynamic=[(2,)], rtol=0, atol=0)
    ways: list[dict[str, Any]] = [{"mode": "lanczos", "antialias": True}, {"mode": "bicubic"}]
    check(lambda x: [F.interpolate(x, (5, 30), **way) for way in ways], image(9, 11), rtol=0, atol=0)


def test_grids_of_sizes_that_depend_on_the_input() -> None:
    def call(x: torch.Tensor, theta: torch.Tensor) -> list[torch.Tensor]:
        return [
            F.grid_sample(x, F.affine_grid(theta, x.size(), align_corners=align), align_corners=align)
            for align in (False, True)
        ]

    theta = _random(3, 2, 3)
    others = [(_random(2, 2, *sizes), theta[:2]) for sizes in ((1, 9), (3, 1))]
    check(call, _random(3, 2, 5, 7), theta, others=others, dynamic=[(0, 2, 3), (0,)], atol=1e-5)


def test_sizes_that_are_rounded_otherwise_in_float32() -> None:
    """100 * 0.29 is 28.999999999999996 in float64 and 29 in float32, 300 * 0.21 is 63 and 62.999996."""
    modes = ("bilinear", "bicubic", "nearest", "nearest-exact")
    check(
        lambda x: [F.interpolate(x, scale_factor=0.29, mode=mode) for mode in modes], _random(1, 1, 100, 50), atol=1e-4
    )
    check(
        lambda x: [F.interpolate(x, scale_factor=0.21, mode=mode) for mode in modes], _random(1, 1, 9, 300), atol=1e-4
    )


def test_dynamic_sizes_that_are_rounded_otherwise_in_float32() -> None:
    def call(x: torch.Tensor) -> list[torch.Tensor]:
        height, width = x.shape[2:]
        modes = ("bilinear", "bicubic", "nearest", "nearest-exact")
        return [
            *(F.interpolate(x, scale_factor=(0.29, 0.21), mode=mode) for mode in modes),
            x.new_zeros(math.floor(height * 0.29), math.ceil(width / 0.7)),
            x * (height * 0.29),
        ]

    others = [(_random(1, 1, 100, 300),), (_random(1, 1, 58, 51),)]
    check(call, _random(1, 1, 13, 9), others=others, dynamic=[(2, 3)], atol=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_sizes_that_a_factor_does_not_change(mode: str) -> None:
    """PyTorch ignores the factor of such an axis, but not for bicubic; "nearest" ignores one that doubles a size."""
    factors = {"bilinear": ((1.1, False), (1.1, True)), "nearest": ((1.1, False), (2.3, False))}

    def call(x: torch.Tensor) -> list[torch.Tensor]:
        return [
            F.interpolate(x, scale_factor=factor, mode=mode, antialias=antialias)
            for factor, antialias in factors.get(mode, ((1.3, False), ((1.0, 1.1), False)))
        ]

    others = [(_random(1, 1, height, width),) for height in (2, 3, 5, 9, 11) for width in (2, 3, 8, 10)]
    check(call, _random(1, 1, 20, 23), others=others, dynamic=[(2, 3)], atol=1e-4)
    check(call, _random(1, 1, 3, 3), atol=1e-4)
    check(call, _random(1, 1, 3, 11), atol=1e-4)


def test_factor_of_nearest_pixels_of_rows() -> None:
    """Only for images does "nearest" ignore a factor that does not change the size."""
    call = lambda x: F.interpolate(x, scale_factor=1.1)  # noqa: E731
    check(call, _random(1, 1, 3))
    check(call, _random(1, 1, 23), others=[(_random(1, 1, size),) for size in (2, 3, 9, 11)], dynamic=[(2,)])


def test_factor_of_linear_rows() -> None:
    """Like that of images: PyTorch ignores one that does not change the size."""
    call = lambda x: F.interpolate(x, scale_factor=1.1, mode="linear")  # noqa: E731
    check(call, _random(1, 2, 5), atol=1e-5)
    check(call, _random(1, 2, 23), others=[(_random(1, 2, size),) for size in (1, 5, 9, 11)], dynamic=[(2,)], atol=1e-5)


def test_nearest_pixels_that_are_rounded_otherwise_in_a_division() -> None:
    """Of 82 pixels of 2, the 42nd is the first in PyTorch, and the second by ONNX's rule."""
    check(lambda x: F.interpolate(x, 82), _random(1, 1, 2))
    check(lambda x: F.interpolate(x, scale_factor=0.09), _random(1, 1, 231))


def test_infinity_and_nan_stay_in_their_windows() -> None:
    def call(x: torch.Tensor) -> list[torch.Tensor]:
        return [
            F.adaptive_avg_pool2d(x, 3),
            F.adaptive_avg_pool2d(x, (1, 4)),
            F.interpolate(x, (4, 5), mode="bilinear", antialias=True, align_corners=True),
            F.interpolate(x, scale_factor=0.6, mode="bicubic", antialias=True),
        ]

    x = _random(1, 2, 7, 9)
    special = x.clone()
    special[0, 0, 0, 0], special[0, 1, 5, 6] = torch.inf, torch.nan
    check(call, x, others=[(special,)], rtol=1e-4, atol=1e-4)
    pool = lambda x: [F.adaptive_avg_pool2d(x, (3, 1)), F.adaptive_avg_pool1d(x[0], 5)]  # noqa: E731
    check(pool, x, others=[(special,), (_random(1, 2, 11, 5),)], dynamic=[(2, 3)])
