# SPDX-License-Identifier: Apache-2.0
"""The compiled part of torchvision, `torchvision::nms` and others, for torchvision 0.25 and newer without its own.

torchvision's Python code registers gradients, fake kernels and autocast; this module defines the operators and their
kernels for the CPU. Images are not decoded: torchvision.io needs torchvision's own libraries.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from polyop._base.after_import import after_import
from polyop.accelerating.overrides import nms_threshold

__all__ = ["failure", "install"]

_polyop = torch.ops.polyop
_library: torch.library.Library | None = None
_ROIS = "Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_SIZE = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_CONV = (
    "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, "
    "SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)
_MAPPED = (
    "Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
)
_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qroi_align(Tensor input, Tensor rois, float input_scale, int input_zero_point, float rois_scale, "
    "int rois_zero_point, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, "
    "bool aligned) -> Tensor",
    "box_iou_rotated(Tensor boxes1, Tensor boxes2) -> Tensor",
    f"roi_align(Tensor input, {_ROIS}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_align_backward(Tensor grad, {_ROIS}, {_SIZE}, int sampling_ratio, bool aligned) -> Tensor",
    f"roi_pool(Tensor input, {_ROIS}) -> (Tensor, Tensor)",
    "_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, "
    f"SymInt pooled_width, {_SIZE}) -> Tensor",
    f"ps_roi_align(Tensor input, {_ROIS}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward({_MAPPED}, int sampling_ratio, {_SIZE}) -> Tensor",
    f"ps_roi_pool(Tensor input, {_ROIS}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward({_MAPPED}, {_SIZE}) -> Tensor",
    f"deform_conv2d({_CONV}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, {_CONV}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "_cuda_version() -> int",
)


def _nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    return _polyop.nms(dets.float(), scores.float(), iou_threshold=nms_threshold(iou_threshold))


_qnms = _nms  # of the integers: suppression does not depend on their scale


def _qroi_align(
    input: Tensor, rois: Tensor, input_scale: float, input_zero_point: int, rois_scale: float, rois_zero_point: int,
    spatial_scale: float, height: int, width: int, sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    """Averages of the integers, rounded. Their scale and zero point are those of the result."""
    boxes = (rois.float() - rois_zero_point) * rois_scale
    pooled = _roi_align(input.float() - input_zero_point, boxes, spatial_scale, height, width, sampling_ratio, aligned)
    limits = torch.iinfo(input.dtype)
    return (pooled.round() + input_zero_point).clamp(limits.min, limits.max).to(input.dtype)


def _box_iou_rotated(boxes1: Tensor, boxes2: Tensor) -> Tensor:
    """torchvision's angles are degrees against the clock."""
    radians = boxes1.new_tensor([1, 1, 1, 1, -torch.pi / 180])
    return _polyop.box_iou_rotated(boxes1 * radians, boxes2 * radians)


def _bins(scale: float, height: int, width: int) -> dict[str, Any]:
    return {"spatial_scale": scale, "output_height": height, "output_width": width}


def _roi_align(
    input: Tensor, rois: Tensor, scale: float, height: int, width: int, sampling_ratio: int, aligned: bool
) -> Tensor:
    bins = _bins(scale, height, width)
    return _polyop.roi_align(input, rois, **bins, sampling_ratio=max(sampling_ratio, 0), aligned=int(aligned))


def _roi_align_backward(
    grad: Tensor, rois: Tensor, scale: float, height: int, width: int, batch_size: int, channels: int, rows: int,
    columns: int, sampling_ratio: int, aligned: bool,
) -> Tensor:  # fmt: skip
    input = grad.new_empty(batch_size, channels, rows, columns)  # not read: the gradient does not depend on its values
    bins = _bins(scale, height, width)
    return _polyop.roi_align_backward(
        grad, input, rois, **bins, sampling_ratio=max(sampling_ratio, 0), aligned=int(aligned)
    )


def _roi_pool(input: Tensor, rois: Tensor, scale: float, height: int, width: int) -> tuple[Tensor, Tensor]:
    return _polyop.roi_pool(input, rois, **_bins(scale, height, width), rounded=1)


def _roi_pool_backward(
    grad: Tensor, rois: Tensor, argmax: Tensor, scale: float, height: int, width: int, *size: int
) -> Tensor:
    input = grad.new_empty(*size)  # not read: the positions are given
    return _polyop.roi_pool_backward(grad, input, rois, argmax, **_bins(scale, height, width), rounded=1)


# ---- position-sensitive pooling --------------------------------------------------------------------


def _channel_of_bin(rois: Tensor, channels: int, height: int, width: int) -> Tensor:
    """Returns the channel that each bin reads, [R, C / (height * width), height, width]."""
    if channels % (height * width) != 0:
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    mapping = torch.arange(channels, dtype=torch.int32, device=rois.device)
    return mapping.reshape(1, -1, height, width).repeat(rois.size(0), 1, 1, 1)


def _ps_roi_align(
    input: Tensor, rois: Tensor, scale: float, height: int, width: int, sampling_ratio: int
) -> tuple[Tensor, Tensor]:
    mapping = _channel_of_bin(rois, input.size(1), height, width)
    pooled = _roi_align(input, rois, scale, height, width, sampling_ratio, True)
    own = pooled.unflatten(1, (-1, height, width)).diagonal(dim1=2, dim2=4).diagonal(dim1=2, dim2=3)
    return own.contiguous(), mapping


def _ps_roi_align_backward(
    grad: Tensor, rois: Tensor, mapping: Tensor, scale: float, height: int, width: int, sampling_ratio: int,
    batch_size: int, channels: int, rows: int, columns: int,
) -> Tensor:  # fmt: skip
    of_pooled = grad.new_zeros(grad.size(0), channels // (height * width), height, width, height, width)
    of_pooled.diagonal(dim1=2, dim2=4).diagonal(dim1=2, dim2=3).copy_(grad)
    return _roi_align_backward(
        of_pooled.flatten(1, 3), rois, scale, height, width, batch_size, channels, rows, columns, sampling_ratio, True
    )


def _edges(first: Tensor, last: Tensor, count: int, extent: int) -> tuple[Tensor, Tensor]:
    """Returns the first and the last pixel + 1 of each bin, [R, count]. torchvision's bins never contain the last row
    and column of the image."""
    size = (last - first).clamp(min=1) / count
    numbers = torch.arange(count, dtype=size.dtype, device=size.device)
    begin = (numbers * size[:, None]).floor() + first[:, None]
    end = ((numbers + 1) * size[:, None]).ceil() + first[:, None]
    return begin.clamp(0, extent - 1).long(), end.clamp(0, extent - 1).long()


def _rectangles(
    rois: Tensor, size: Sequence[int], scale: float, height: int, width: int
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Returns the image, channel, top, bottom, left and right of each bin, and the weight of its pixels."""
    channels, rows, columns = size
    channel = _channel_of_bin(rois, channels, height, width).long()
    scaled = rois[:, 1:] * scale
    x1, y1, x2, y2 = (scaled.sign() * (scaled.abs() + 0.5).floor()).unbind(1)  # halves are rounded away from 0
    top, bottom = (e[:, None, :, None].expand_as(channel) for e in _edges(y1, y2, height, rows))
    left, right = (e[:, None, None, :].expand_as(channel) for e in _edges(x1, x2, width, columns))
    image = rois[:, 0].long()[:, None, None, None].expand_as(channel)
    area = ((bottom - top) * (right - left)).double()
    weight = torch.where((bottom > top) & (right > left), 1 / area, 0.0)
    return (image, channel, top, bottom, left, right), weight


def _ps_roi_pool(input: Tensor, rois: Tensor, scale: float, height: int, width: int) -> tuple[Tensor, Tensor]:
    bins, weight = _rectangles(rois, input.shape[1:], scale, height, width)
    image, channel, top, bottom, left, right = bins
    # Sums of rectangles from the image's corner, in double precision: four of them give the sum of any rectangle.
    corner = torch.nn.functional.pad(input.double().cumsum(2).cumsum(3), (1, 0, 1, 0))
    total = corner[image, channel, bottom, right] - corner[image, channel, top, right]
    total += corner[image, channel, top, left] - corner[image, channel, bottom, left]
    return (total * weight).to(input.dtype), channel.int()


def _ps_roi_pool_backward(
    grad: Tensor, rois: Tensor, mapping: Tensor, scale: float, height: int, width: int, batch_size: int, channels: int,
    rows: int, columns: int,
) -> Tensor:  # fmt: skip
    """The gradient of the result; torchvision's bins have other borders in the gradient than in the result."""
    bins, weight = _rectangles(rois, (channels, rows, columns), scale, height, width)
    image, channel, top, bottom, left, right = bins
    value = grad * weight
    # Differences at the corners, whose sums from the image's corner are the gradients of the pixels.
    corner = torch.zeros(batch_size, channels, rows + 1, columns + 1, dtype=torch.float64)
    for y, x, sign in ((top, left, 1), (bottom, right, 1), (top, right, -1), (bottom, left, -1)):
        corner.index_put_((image, channel, y, x), sign * value, accumulate=True)
    return corner.cumsum(2).cumsum(3)[:, :, :-1, :-1].to(grad.dtype).contiguous()


# ---- deformable convolution ------------------------------------------------------------------------


def _window(window: Sequence[int]) -> dict[str, Any]:
    return {
        "stride": list(window[:2]),
        "padding": list(window[2:4]),
        "dilation": list(window[4:6]),
        "groups": window[6],
        "deform_groups": window[7],
    }


def _deform_conv2d(input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *rest: Any) -> Tensor:
    *window, use_mask = rest
    if use_mask:
        return _polyop.modulated_deform_conv2d(input, offset, mask, weight, bias, **_window(window))
    return _polyop.deform_conv2d(input, offset, weight, **_window(window)).add_(bias[:, None, None])


def _deform_conv2d_backward(
    grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *rest: Any
) -> tuple[Tensor, ...]:
    *window, use_mask = rest
    of_bias = grad.sum((0, 2, 3))
    if use_mask:
        of_input, of_offset, of_mask, of_weight = _polyop.modulated_deform_conv2d_backward(
            grad, input, offset, mask, weight, **_window(window), output_mask=15
        )[:4]
        return of_input, of_weight, of_offset, of_mask, of_bias
    of_input, of_offset, of_weight = _polyop.deform_conv2d_backward(grad, input, offset, weight, **_window(window))
    return of_input, of_weight, of_offset, torch.zeros_like(mask), of_bias


# ---- installation ----------------------------------------------------------------------------------


def failure() -> str | None:
    """Returns why torchvision has no operators, or None if it has them."""
    try:
        importlib.import_module("torchvision")
        if hasattr(torch.ops.torchvision, "nms"):
            return None
        why = "Couldn't load custom C++ ops"
    except (ImportError, OSError, RuntimeError) as error:
        why = str(error).splitlines()[0]
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]  # a later import registers its gradients with the operators
    return why


def _has_ops() -> bool:
    """A function and not a lambda: torch.jit.script reads it, which torchvision uses while it exports."""
    return True


def _tell(module: ModuleType) -> None:
    """Tells torchvision.extension, right after its execution, that there are operators."""
    module._has_ops = _has_ops  # type: ignore[attr-defined]


def install() -> None:
    """Defines torchvision's operators. Raises RuntimeError if torchvision itself defines them."""
    global _library
    if _library is not None:
        return
    if hasattr(torch.ops.torchvision, "nms"):
        raise RuntimeError("torchvision's own operators are loaded: they cannot be replaced in this process")
    library = torch.library.Library("torchvision", "DEF")
    for schema in _SCHEMAS:
        library.define(schema)
        name = schema.partition("(")[0]
        if name == "_cuda_version":
            library.impl(name, lambda: -1, "CompositeExplicitAutograd")
        else:
            library.impl(name, globals()[f"_{name.lstrip('_')}"], "CPU")
    _library = library
    after_import({"torchvision.extension": _tell})
