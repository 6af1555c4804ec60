# SPDX-License-Identifier: Apache-2.0
"""Sampling and resizing of images and volumes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from polyop._aten.table import SLOW, WRONG, decomposes, overload
from polyop._base.extents import float32, floor_scale, scale_for

aten = torch.ops.aten
_SAMPLED = frozenset((torch.float32, torch.float16, torch.bfloat16))


@decomposes("aten::grid_sampler_3d", nodes=("grid_sampler",))
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    dtype = input.dtype if input.dtype in _SAMPLED else torch.float32
    result = torch.ops.polyop.grid_sampler.default(
        input.to(dtype),
        grid.to(dtype),
        interpolation_mode=("bilinear", "nearest", "bicubic")[interpolation_mode],
        padding_mode=("zeros", "border", "reflection")[padding_mode],
        align_corners=int(align_corners),
    )
    return result.to(input.dtype)


def _axis(size: int, like: Tensor, align_corners: bool) -> Tensor:
    """Returns the coordinates of an axis of affine_grid: -1 to 1."""
    at = torch.arange(size, device=like.device).to(like.dtype)
    if align_corners:
        return (at * (2 / torch.sym_max(size - 1, 1)) - 1) * torch.sym_min(size - 1, 1)  # 0 for a size of 1
    return (at * 2 + 1) / size - 1


@decomposes("aten::affine_grid_generator", without=SLOW)
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Any:
    extents = list(size[2:])
    axes = len(extents)
    columns = []
    for i in reversed(range(axes)):
        shape = [1] * axes
        shape[i] = -1
        columns.append(_axis(extents[i], theta, align_corners).reshape(shape).expand(extents))
    columns.append(torch.ones(extents, dtype=theta.dtype, device=theta.device))
    base = torch.stack(columns, -1).reshape(-1, axes + 1)
    return torch.matmul(base, theta.mT).reshape([theta.shape[0], *extents, axes])


def _affine_grid(theta: Tensor, size: Sequence[Any], align_corners: bool | None = None) -> Any:
    """Replaces the function in a capture: PyTorch's operator takes no sizes that depend on the input's."""
    if not any(isinstance(extent, torch.SymInt) for extent in size):
        return NotImplemented
    return affine_grid_generator(theta, size, bool(align_corners))


REPLACED: dict[Any, Callable[..., Any]] = {functional.affine_grid: _affine_grid}


def weighted_sums(self: Tensor, axis: int, index: Tensor, weights: Tensor) -> Tensor:
    """Returns the sums of elements along an axis, as many as `index` and `weights` have rows.

    An index equal to the size of the axis is that of a zero. No sum depends on elements that its row lacks: a product
    with a matrix would multiply infinity by 0.
    """
    axis = axis % self.dim()
    after = self.dim() - axis - 1
    padded = aten.constant_pad_nd(self, [0, 0] * after + [0, 1], 0.0)
    taken = padded.index_select(axis, index.reshape(-1)).unflatten(axis, index.shape)
    return (taken * weights.reshape([*weights.shape, *[1] * after])).sum(axis + 1)


# Filters of antialiased resizing: the weight of a pixel at a distance from the centre.


def triangle(distance: Tensor) -> Tensor:
    return (1 - distance.abs()).clamp(min=0)


def cubic(distance: Tensor, a: float = -0.5) -> Tensor:
    """`a`: by default PyTorch's value when antialiasing."""
    x = distance.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def lanczos(distance: Tensor) -> Tensor:
    x = distance.abs()
    return torch.where(x < 3, torch.sinc(x) * torch.sinc(x / 3), torch.zeros_like(x))


def are_equal(a: Any, b: Any, device: torch.device) -> bool | Tensor:
    """Returns whether extents are equal, as a tensor if that depends on sizes that are dynamic."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    x, y = (torch.scalar_tensor(extent, dtype=torch.int64, device=device) for extent in (a, b))
    return x == y


def either(condition: bool | Tensor, yes: Tensor, no: Tensor) -> Tensor:
    if isinstance(condition, bool):
        return yes if condition else no
    return torch.where(condition, yes, no)


def ratio(inputs: Any, outputs: Any, align_corners: bool, scale: float | None) -> tuple[Any, Any]:
    """Returns two numbers, whose quotient is the distance of two output pixels in input pixels, for an axis whose size
    changes."""
    if align_corners:
        return (inputs - 1) * torch.sym_min(outputs - 1, 1), torch.sym_max(outputs - 1, 1)  # 0 for one output pixel
    return (1.0, scale) if scale is not None and scale > 0 else (inputs, outputs)


def _step(inputs: Any, outputs: Any, align_corners: bool, scale: float | None) -> Any:
    distance, pixels = ratio(inputs, outputs, align_corners, scale)
    return distance / pixels


def most_pixels(step: Any, reach: float) -> Any:
    """Returns the largest number of pixels under a filter, or more."""
    return math.ceil(2 * reach * torch.sym_max(step, 1.0)) + 1


def filter_rows(
    inputs: Any, centre: Tensor, stretch: Any, most: Any, filter: Callable[[Tensor], Tensor], reach: float
) -> tuple[Tensor, Tensor]:
    """Returns `index` and `weights` of weighted_sums for filters at these centres."""
    support = reach * stretch
    first = (centre - support + 0.5).to(torch.int64).clamp(min=0).unsqueeze(1)
    last = (centre + support + 0.5).to(torch.int64).clamp(max=inputs).unsqueeze(1)
    pixel = first + torch.arange(most, device=centre.device)
    within = pixel < last
    weights = filter((pixel + 0.5 - centre.unsqueeze(1)) / stretch)
    weights = torch.where(within, weights, torch.zeros_like(weights))
    return torch.where(within, pixel, inputs), weights / weights.sum(1, keepdim=True)


def _filtered(
    self: Tensor, axis: int, outputs: Any, step: Any, filter: Callable[[Tensor], Tensor], reach: float
) -> Tensor:
    """PyTorch leaves an axis as it is if its size stays the same, whatever the step."""
    inputs = self.shape[axis]
    same = are_equal(inputs, outputs, self.device)
    if same is True:
        return self
    middle = torch.arange(outputs, device=self.device, dtype=self.dtype) + 0.5
    # The size can stay the same for steps of at most 1, for which no filter is stretched.
    centre = either(same if isinstance(step, float) and 0.5 < step < 1 else False, middle, middle * step)
    index, weights = filter_rows(inputs, centre, torch.sym_max(step, 1.0), most_pixels(step, reach), filter, reach)
    return weighted_sums(self, axis, index, weights)


def _antialiased(filter: Callable[[Tensor], Tensor], reach: float, resize: bool = True) -> Any:
    """Returns a translation; `resize` says whether the exporter writes calls whose scale is a ratio of sizes."""

    def call(
        self: Tensor,
        output_size: Sequence[int],
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
    ) -> Any:
        if not self.dtype.is_floating_point:
            return NotImplemented
        axes = list(zip((-2, -1), output_size, (scales_h, scales_w), strict=True))
        if resize and not align_corners and all(_is_ratio(self.shape[a], size, s) for a, size, s in axes):
            return NotImplemented
        result = self.to(torch.float32) if self.dtype in (torch.float16, torch.bfloat16) else self
        for axis, size, scale in axes:
            step = _step(self.shape[axis], size, align_corners, scale)
            result = _filtered(result, axis, size, step, filter, reach)
        return result.to(self.dtype)

    return call


def _is_ratio(inputs: Any, outputs: Any, scale: float | None) -> bool:
    """Returns True if the scale is that of the sizes."""
    if scale is None or scale <= 0 or scale == int(scale):
        return True
    return isinstance(inputs, int) and isinstance(outputs, int) and outputs in (inputs, inputs * scale)


_WHEN = "align_corners=True, or a scale that is no ratio of the sizes"
decomposes("aten::_upsample_bilinear2d_aa", without=WRONG, when=_WHEN)(_antialiased(triangle, 1.0))
decomposes("aten::_upsample_bicubic2d_aa", without=WRONG, when=_WHEN)(_antialiased(cubic, 2.0))
decomposes("aten::_upsample_lanczos2d_aa")(_antialiased(lanczos, 3.0, resize=False))


# ---- the nearest pixel -----------------------------------------------------------------------------


def _nearest_indices(
    inputs: Any, outputs: Any, scale: float | None, exact: bool, in_plane: bool, device: torch.device
) -> Tensor:
    """`in_plane`: of an image, where the mode "nearest" ignores a scale that keeps or doubles the size."""
    at = torch.arange(outputs, device=device)
    pixel = at.to(torch.float32)
    index = (((pixel + 0.5) if exact else pixel) * _step(inputs, outputs, False, scale)).to(torch.int64)
    if scale is not None and in_plane and not exact:
        index = either(are_equal(2 * inputs, outputs, device), at // 2, index)
        index = either(are_equal(inputs, outputs, device), at, index)
    return index.clamp(max=inputs - 1)


def _is_resized(inputs: Any, outputs: Any, scale: float | None, in_plane: bool) -> bool:
    """Returns True if ONNX's Resize has as many pixels as PyTorch, and takes the same ones.

    PyTorch multiplies the index of a pixel by a step, Resize divides it by the scale.
    """
    if scale is not None and scale == int(scale):
        return True
    if not (isinstance(inputs, int) and isinstance(outputs, int)):
        # Sizes that the program computes from others have many ratios: those of feature maps are integers.
        fraction = isinstance(outputs, int) or "ToFloat" in str(outputs.node.expr)
        return scale is None and not fraction
    if scale is not None and floor_scale(inputs, scale) != outputs:
        return False
    ratio = float32(scale if scale is not None else outputs / inputs)
    if scale is not None and outputs == inputs:
        return False  # runtimes ignore the scale if no size changes
    if in_plane and outputs == 2 * inputs:
        scale = None
    step = float32(1 / scale if scale is not None else inputs / outputs)
    return all(int(float32(i * step)) == int(float32(i / ratio)) for i in range(outputs))


def _nearest(
    self: Tensor, output_size: Sequence[Any] | None, scales: Sequence[float | None] | None, exact: bool
) -> Any:
    axes = range(2, self.dim())
    if scales is None:
        scales = [None] * len(axes)
    if output_size is None:
        output_size = [scaled(self.shape[axis], scale) for axis, scale in zip(axes, scales, strict=True)]
    parts = list(zip(axes, output_size, scales, strict=True))
    in_plane = self.dim() == 4
    if not exact and all(_is_resized(self.shape[axis], size, scale, in_plane) for axis, size, scale in parts):
        return NotImplemented
    for axis, size, scale in parts:
        if scale not in (None, 1) or are_equal(self.shape[axis], size, self.device) is not True:
            index = _nearest_indices(self.shape[axis], size, scale, exact, in_plane, self.device)
            self = self.index_select(axis, index)
    return self


def scaled(extent: Any, scale: float | None) -> Any:
    """Returns the size that PyTorch computes from a factor."""
    assert scale is not None
    return extent * int(scale) if scale == int(scale) else math.floor(extent * scale)


def _nearest_of(exact: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def vec(input: Tensor, output_size: Sequence[Any] | None, scale_factors: Sequence[float] | None) -> Any:
        return _nearest(input, output_size, scale_factors, exact)

    def call(self: Tensor, output_size: Sequence[Any], *scales: float | None, **given: float | None) -> Any:
        found = [*scales, *given.values()]
        return _nearest(self, output_size, found if len(found) == self.dim() - 2 else None, exact)

    return vec, call


for _prefix, _exact in (("upsample_nearest", False), ("_upsample_nearest_exact", True)):
    _vec, _call = _nearest_of(_exact)
    _when = "" if _exact else "a scale or ratio of sizes that is no integer"
    _without = SLOW if _exact else WRONG
    decomposes(*(f"aten::{_prefix}{n}d.vec" for n in (1, 2, 3)), without=_without, when=_when)(_vec)
    decomposes(*(f"aten::{_prefix}{n}d" for n in (1, 2, 3)), without=_without, when=_when)(_call)


# ---- scales whose product with a size is an integer in only one of float32 and float64, or that PyTorch ignores


def _with_sizes_of_pytorch(target: str) -> Callable[..., Any]:
    linear = "linear" in target

    def call(
        input: Tensor, output_size: Sequence[Any] | None, align_corners: bool, scale_factors: Sequence[float] | None
    ) -> Any:
        if scale_factors is None:
            return NotImplemented
        sizes = input.shape[2:]
        expected = [scaled(n, s) if isinstance(n, int) else None for n, s in zip(sizes, scale_factors, strict=True)]
        parts = list(zip(sizes, expected, scale_factors, strict=True))
        if linear:  # PyTorch leaves an axis as it is if its size stays the same
            parts = [(n, out, 1.0 if out == n else s) for n, out, s in parts]
        near = [s if out is None or floor_scale(n, s) == out else scale_for(n, out, s) for n, out, s in parts]
        if near == list(scale_factors):
            return NotImplemented
        assert None not in near, "a scale that differs by a rounding has the size"
        operator: Any = overload(target)
        return operator(input, None, align_corners, near)

    return call


for _mode in ("bilinear2d", "bicubic2d", "trilinear3d"):
    _target = f"aten::upsample_{_mode}.vec"
    decomposes(_target, without=WRONG, when="100 x 0.29 pixels: 28 in PyTorch, 29 in ONNX")(
        _with_sizes_of_pytorch(_target)
    )


@decomposes("aten::upsample_linear1d.vec", without=WRONG)
def upsample_linear1d(
    input: Tensor, output_size: Sequence[Any] | None, align_corners: bool, scale_factors: Sequence[float] | None
) -> Any:
    """Resizes an image of one row: PyTorch ignores a factor that keeps a size, unlike its own decomposition."""
    sizes = None if output_size is None else [1, *output_size]
    scales = None if scale_factors is None else [1.0, *scale_factors]
    return aten.upsample_bilinear2d.vec(input.unsqueeze(2), sizes, align_corners, scales).squeeze(2)
