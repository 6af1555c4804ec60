"""Gradients of the differentiable operators: each is written once more in torch's own operators, which torch differentiates.

A formula is what the forward kernel computes, for any floating type. It runs in the backward pass alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from polyop._torch import OPERATORS


def _sample(pictures: Tensor, index: Tensor, y: Tensor, x: Tensor, clamp: bool) -> Tensor:
    """Bilinear samples of pictures [N, C, H, W] at y, x [...] of picture index [...] -> [..., C].

    With `clamp` a sample up to one pixel outside is the border's (RoIAlign); else pixels outside are 0.
    """
    height, width = pictures.shape[-2:]
    if clamp:
        inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
        y, x = y.clamp(0, height - 1), x.clamp(0, width - 1)
    else:
        inside = (y > -1) & (y < height) & (x > -1) & (x < width)
    y, x = torch.where(inside, y, 0), torch.where(inside, x, 0)
    top, left = y.floor(), x.floor()
    total = 0
    for row, row_weight in ((top, top + 1 - y), (top + 1, y - top)):
        for column, column_weight in ((left, left + 1 - x), (left + 1, x - left)):
            there = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
            r, c = row.long().clamp(0, height - 1), column.long().clamp(0, width - 1)
            pixels = pictures[index, :, r, c]
            total = total + pixels * torch.where(there, row_weight * column_weight, 0)[..., None]
    return total


def _pool(samples: Tensor, mode: str) -> Tensor:
    """[R, oh, ow, ny, nx, C] -> [R, C, oh, ow]."""
    pooled = samples.mean((3, 4)) if mode == "avg" else samples.amax((3, 4))
    return pooled.permute(0, 3, 1, 2)


def _by_samples(rois: Tensor, extents: Tensor, bins: tuple[int, int], ratio: int, pool: Callable) -> Tensor:
    """Pools rois in groups of equal numbers of samples; `extents` [R, 2] are (height, width) in pixels."""
    if ratio > 0:
        return pool(slice(None), ratio, ratio)
    if extents.is_meta or len(extents) == 0:  # no extents to look at, and the shape is the same
        return pool(slice(None), 1, 1)
    counts = torch.ceil(extents / extents.new_tensor(bins)).long().clamp(min=0)
    pieces, places = [], []
    for ny, nx in counts.unique(dim=0).tolist():
        mine = (counts == counts.new_tensor([ny, nx])).all(1).nonzero()[:, 0]
        places.append(mine)
        pieces.append(pool(mine, ny, nx))
    return torch.cat(pieces)[torch.cat(places).argsort()]


def _bins(start: Tensor, size: Tensor, bins: int, samples: int) -> Tensor:
    """Where the samples of an axis lie: [R, bins, samples]."""
    at = (torch.arange(samples, dtype=start.dtype, device=start.device) + 0.5) / max(samples, 1)
    bin_of = torch.arange(bins, device=start.device)[:, None]
    return start[:, None, None] + size[:, None, None] / bins * (bin_of + at)


def _pair(values: Sequence[int]) -> Sequence[int]:
    """One value serves both axes."""
    return values if len(values) == 2 else (values[0], values[0])


def _roi_align(
    input: Tensor, rois: Tensor, *, output_height: int, output_width: int, spatial_scale: float, sampling_ratio: int,
    mode: str, aligned: int,
) -> Tensor:  # fmt: skip
    corners = rois[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)
    size = corners[:, 2:] - corners[:, :2]
    size = size if aligned else size.clamp(min=1)

    def pool(mine: Any, ny: int, nx: int) -> Tensor:
        y = _bins(corners[mine, 1], size[mine, 1], output_height, ny)[:, :, None, :, None]
        x = _bins(corners[mine, 0], size[mine, 0], output_width, nx)[:, None, :, None, :]
        y, x = torch.broadcast_tensors(y, x)
        picture = rois[mine, 0].long()[:, None, None, None, None].expand_as(y)
        return _pool(_sample(input, picture, y, x, clamp=True), mode)

    return _by_samples(rois, size.flip(1), (output_height, output_width), sampling_ratio, pool)


def _roi_align_rotated(
    input: Tensor, rois: Tensor, *, output_height: int, output_width: int, spatial_scale: float, sampling_ratio: int,
    aligned: int, clockwise: int,
) -> Tensor:  # fmt: skip
    centre = rois[:, 1:3] * spatial_scale - (0.5 if aligned else 0.0)
    size = rois[:, 3:5] * spatial_scale
    size = size if aligned else size.clamp(min=1)
    angle = -rois[:, 5] if clockwise else rois[:, 5]

    def pool(mine: Any, ny: int, nx: int) -> Tensor:
        v = _bins(-size[mine, 1] / 2, size[mine, 1], output_height, ny)[:, :, None, :, None]
        u = _bins(-size[mine, 0] / 2, size[mine, 0], output_width, nx)[:, None, :, None, :]
        cosine, sine = (f(angle[mine])[:, None, None, None, None] for f in (torch.cos, torch.sin))
        x = v * sine + u * cosine + centre[mine, 0][:, None, None, None, None]
        y = v * cosine - u * sine + centre[mine, 1][:, None, None, None, None]
        picture = rois[mine, 0].long()[:, None, None, None, None].expand_as(y)
        return _pool(_sample(input, picture, y, x, clamp=True), "avg")

    return _by_samples(rois, size.flip(1), (output_height, output_width), sampling_ratio, pool)


def _grid_sampler(
    input: Tensor, grid: Tensor, *, interpolation_mode: str, padding_mode: str, align_corners: int
) -> Tensor:
    return F.grid_sample(input, grid, interpolation_mode, padding_mode, bool(align_corners))


def _deform_conv2d(
    input: Tensor, offset: Tensor, weight: Tensor, *, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int, deform_groups: int,
) -> Tensor:  # fmt: skip
    n, points, height, width = offset.shape[0], weight.shape[2] * weight.shape[3], *offset.shape[2:]
    mask = offset.new_ones(n, deform_groups * points, height, width)
    return _modulated_deform_conv2d(
        input, offset, mask, weight, None, stride=stride, padding=padding, dilation=dilation, groups=groups,
        deform_groups=deform_groups,
    )  # fmt: skip


def _modulated_deform_conv2d(
    input: Tensor, offset: Tensor, mask: Tensor, weight: Tensor, bias: Tensor | None, *, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], groups: int, deform_groups: int,
) -> Tensor:  # fmt: skip
    n, channels = input.shape[:2]
    filters, _, kh, kw = weight.shape
    oh, ow = offset.shape[2:]
    stride, padding, dilation = _pair(stride), _pair(padding), _pair(dilation)

    def count(number: int) -> Tensor:
        return torch.arange(number, device=input.device)

    shift = offset.reshape(n, deform_groups, kh * kw, 2, oh, ow)
    ky, kx = torch.meshgrid(count(kh) * dilation[0], count(kw) * dilation[1], indexing="ij")
    y = count(oh)[:, None] * stride[0] - padding[0] + ky.reshape(-1, 1, 1) + shift[:, :, :, 0]
    x = count(ow) * stride[1] - padding[1] + kx.reshape(-1, 1, 1) + shift[:, :, :, 1]
    parts = input.reshape(n * deform_groups, channels // deform_groups, *input.shape[2:])
    index = count(n * deform_groups).view(n, deform_groups, 1, 1, 1).expand_as(y)
    samples = _sample(parts, index, y, x, clamp=False) * mask.reshape(n, deform_groups, kh * kw, oh, ow, 1)
    columns = samples.permute(0, 1, 5, 2, 3, 4).reshape(n, groups, channels // groups, kh * kw, oh, ow)
    filters_of = weight.reshape(groups, filters // groups, channels // groups, kh * kw)
    out = torch.einsum("ngckhw,gfck->ngfhw", columns, filters_of).reshape(n, filters, oh, ow)
    return out if bias is None else out + bias.view(1, -1, 1, 1)


def _corner_pool(input: Tensor, *, mode: str) -> Tensor:
    dim = 2 if mode in ("top", "bottom") else 3
    if mode in ("bottom", "right"):
        return input.cummax(dim).values
    return input.flip(dim).cummax(dim).values.flip(dim)


def _cummax(input: Tensor, *, dim: int, mode: str) -> Tensor:
    return (torch.cummax if mode == "max" else torch.cummin)(input, dim).values


def _ms_deform_attn(value: Tensor, shapes: Tensor, starts: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
    n, rows, heads, size = value.shape
    queries = locations.shape[1]
    if shapes.is_meta or starts.is_meta:  # no levels to look at, and the shape is the same
        levels = [(0, rows, 1)] * shapes.shape[0]
    else:
        levels = [(start, *extents) for start, extents in zip(starts.tolist(), shapes.tolist(), strict=True)]
    samples = []
    for level, (start, height, width) in enumerate(levels):
        part = value[:, start : start + height * width].flatten(2).transpose(1, 2)
        part = part.reshape(n * heads, size, height, width)
        grid = (2 * locations[:, :, :, level] - 1).transpose(1, 2).flatten(0, 1)
        samples.append(F.grid_sample(part, grid, "bilinear", "zeros", align_corners=False))
    factor = weights.transpose(1, 2).reshape(n * heads, 1, queries, -1)
    out = (torch.stack(samples, -2).flatten(-2) * factor).sum(-1)
    return out.view(n, heads * size, queries).transpose(1, 2)


def _gather_columns(features: Tensor, idx: Tensor) -> Tensor:
    """features [B, C, N], idx [B, ...] -> [B, C, ...]."""
    columns = idx.flatten(1).long()[:, None].expand(-1, features.shape[1], -1)
    return features.gather(2, columns).unflatten(2, idx.shape[1:])


def _three_interpolate(features: Tensor, idx: Tensor, weight: Tensor) -> Tensor:
    return (_gather_columns(features, idx) * weight[:, None]).sum(-1)


# The formula, and which inputs it is differentiated by.
_FORMULAS: dict[str, tuple[Callable[..., Tensor], tuple[int, ...]]] = {
    "roi_align": (_roi_align, (0,)),
    "roi_align_rotated": (_roi_align_rotated, (0,)),
    "grid_sampler": (_grid_sampler, (0, 1)),
    "deform_conv2d": (_deform_conv2d, (0, 1, 2)),
    "modulated_deform_conv2d": (_modulated_deform_conv2d, (0, 1, 2, 3, 4)),
    "corner_pool": (_corner_pool, (0,)),
    "cummax": (_cummax, (0,)),
    "ms_deform_attn": (_ms_deform_attn, (0, 3, 4)),
    "group_points": (_gather_columns, (0,)),
    "gather_points": (_gather_columns, (0,)),
    "three_interpolate": (_three_interpolate, (0, 2)),
}


def _register(name: str, formula: Callable[..., Tensor], differentiable: tuple[int, ...]) -> None:
    operator = OPERATORS[name]

    # PyTorch leaves keyword_only_inputs out where the operator has no attributes.
    def setup_context(ctx: Any, inputs: tuple, output: Any, keyword_only_inputs: dict[str, Any] | None = None) -> None:
        ctx.save_for_backward(*inputs)
        ctx.attributes = operator.values(keyword_only_inputs or {})

    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        with torch.enable_grad():
            leaves = [None if t is None else t.detach() for t in ctx.saved_tensors]
            wanted = [i for i in differentiable if leaves[i] is not None and ctx.needs_input_grad[i]]
            if not wanted:  # by boxes alone, say: they have none
                return (None,) * len(leaves)
            for i in wanted:
                leaves[i].requires_grad_()
            made = torch.autograd.grad(formula(*leaves, **ctx.attributes), [leaves[i] for i in wanted], grad)
        grads: list[Tensor | None] = [None] * len(leaves)
        for i, g in zip(wanted, made, strict=True):
            grads[i] = g
        return tuple(grads)

    torch.library.register_autograd(f"polyop::{name}", backward, setup_context=setup_context)


for _name, (_formula, _inputs) in _FORMULAS.items():
    if _name in OPERATORS:  # a library may be built with fewer
        _register(_name, _formula, _inputs)
