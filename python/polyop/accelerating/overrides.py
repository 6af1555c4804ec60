# SPDX-License-Identifier: Apache-2.0
"""Overrides of PyTorch's and torchvision's operators by polyop's kernels, and the calls that they handle.

An override gets the arguments of the operator that it replaces, below autograd. It returns the result, with the same
strides, or FALLBACK to leave the call to PyTorch's own kernel: polyop has no kernel for the type, the call is too small
to gain, or PyTorch's result differs (coordinates that are not finite). A RuntimeError from polyop has the same effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from polyop._base.extents import float32, next_float32, scale_for
from polyop._torch import load  # noqa: F401 - registers the operators

FALLBACK = object()
"""The result of an override that leaves the call to PyTorch's own kernel."""

# Calls with fewer elements in the result, or fewer channels, are left to PyTorch: polyop's kernels gain nothing there,
# or less than a call from Python costs. Measured with one thread by bench/accelerated.py.
MIN_ELEMENTS = {
    "grid_sampler_2d bilinear": 1 << 16,
    "grid_sampler_2d nearest": 1 << 21,
    "grid_sampler_2d bicubic": 1 << 13,
    "grid_sampler_3d": 1 << 11,
    "grid_sampler_2d_backward bilinear": 1 << 14,
    "grid_sampler_2d_backward nearest": 1 << 17,
    "grid_sampler_2d_backward bicubic": 1 << 12,
    "grid_sampler_3d_backward": 1 << 14,
    "upsample_bicubic2d": 1 << 10,
    "upsample_bicubic2d_backward": 1 << 10,
    "cummax, cummin along the last dimension": 1 << 14,
    "cummax, cummin along another": 1 << 12,
    "instance_norm": 1 << 8,
    "roi_align": 1 << 12,
    "_roi_align_backward": 1 << 12,
    "_roi_pool_backward": 1 << 16,
    "nms": 1 << 6,
    "deform_conv2d": 1 << 10,
    "_deform_conv2d_backward": 1 << 10,
}
MIN_CHANNELS = {
    "grid_sampler_2d bilinear": 16,
    "grid_sampler_2d nearest": 32,
    "grid_sampler_2d bicubic": 8,
    "grid_sampler_3d": 1,
    "grid_sampler_2d_backward bilinear": 16,
    "grid_sampler_2d_backward nearest": 64,
    "grid_sampler_2d_backward bicubic": 4,
    "grid_sampler_3d_backward": 16,
}

_FLOATS = frozenset({torch.float32, torch.float16, torch.bfloat16})
_SCANNED = _FLOATS | {torch.int32, torch.int64}
_INTERPOLATION = ("bilinear", "nearest", "bicubic")
_PADDING = ("zeros", "border", "reflection")
# For larger coordinates, in image widths, and for NaN, PyTorch's sampling depends on rounding or is undefined.
_MAX_COORDINATE = 1000.0

_polyop = torch.ops.polyop


@dataclass(frozen=True)
class Override:
    """A kernel that replaces an operator's kernel at a dispatch key."""

    name: str
    kernel: Callable[..., Any]
    key: str = "CPU"


def _all_within(values: Tensor, bound: float) -> bool:
    low, high = values.aminmax()
    return -bound <= low.item() and high.item() <= bound  # False for NaN


# ---- sampling --------------------------------------------------------------------------------------


def _is_sampled(
    axes: int, operator: str, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int
) -> bool:
    """Returns True if polyop samples faster than PyTorch, with the same result."""
    # float32 only: PyTorch rounds coordinates to half types, polyop does not.
    if input.dtype != torch.float32 or grid.dtype != torch.float32 or input.dim() != axes + 2:
        return False
    if not (0 <= interpolation_mode < 3 and 0 <= padding_mode < 3):
        return False
    size = f"{operator} {_INTERPOLATION[interpolation_mode]}" if axes == 2 else operator
    channels = input.size(1)
    if channels < MIN_CHANNELS[size] or grid.numel() // axes * channels < MIN_ELEMENTS[size]:
        return False
    return _all_within(grid, _MAX_COORDINATE)


def _grid_sampler(
    axes: int, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    if not _is_sampled(axes, f"grid_sampler_{axes}d", input, grid, interpolation_mode, padding_mode):
        return FALLBACK
    return _polyop.grid_sampler.default(
        input,
        grid,
        interpolation_mode=_INTERPOLATION[interpolation_mode],
        padding_mode=_PADDING[padding_mode],
        align_corners=int(align_corners),
    )


def _grid_sampler_backward(
    axes: int, grad_output: Tensor, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int,
    align_corners: bool, output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    if not _is_sampled(axes, f"grid_sampler_{axes}d_backward", input, grid, interpolation_mode, padding_mode):
        return FALLBACK
    if grad_output.dtype != torch.float32:
        return FALLBACK
    # PyTorch always computes the gradient of the grid.
    of_input, of_grid = _polyop.grid_sampler_backward.default(
        grad_output, input, grid, interpolation_mode=_INTERPOLATION[interpolation_mode],
        padding_mode=_PADDING[padding_mode], align_corners=int(align_corners), output_mask=2 + bool(output_mask[0]),
    )  # fmt: skip
    return (of_input if output_mask[0] else None), of_grid


# ---- resizing --------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _scale_for(inputs: int, outputs: int, align_corners: bool, scale: float | None) -> float | None:
    """Returns the float32 scale for which bicubic_interpolate turns `inputs` pixels into `outputs`, or None."""
    if align_corners:  # the scale only determines the size
        return (outputs + 0.5) / inputs
    return scale_for(inputs, outputs, scale if scale is not None and scale > 0 else outputs / inputs)


def _scales_for(
    inputs: Sequence[int], outputs: Sequence[int], align_corners: bool, scales_h: float | None, scales_w: float | None
) -> list[float] | None:
    scales = [_scale_for(i, o, align_corners, s) for i, o, s in zip(inputs, outputs, (scales_h, scales_w), strict=True)]
    found = [scale for scale in scales if scale is not None]
    return found if len(found) == 2 else None


def _upsample_bicubic2d(
    self: Tensor,
    output_size: Sequence[int],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Any:
    if self.dtype not in _FLOATS or self.dim() != 4 or self.numel() == 0:
        return FALLBACK
    if len(output_size) != 2 or min(output_size) <= 0:
        return FALLBACK
    images, channels, height, width = self.shape
    if images * channels * output_size[0] * output_size[1] < MIN_ELEMENTS["upsample_bicubic2d"]:
        return FALLBACK
    # PyTorch's result has the memory format of the input.
    plain = self.is_contiguous() and self.stride(1) == height * width
    if not (plain or (channels > 1 and self.is_contiguous(memory_format=torch.channels_last))):
        return FALLBACK
    scales = _scales_for((height, width), output_size, align_corners, scales_h, scales_w)
    if scales is None:
        return FALLBACK
    result = _polyop.bicubic_interpolate.default(self, scale_factor=scales, align_corners=int(align_corners))
    return result if plain else result.contiguous(memory_format=torch.channels_last)


def _upsample_bicubic2d_backward(
    grad_output: Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Any:
    if grad_output.dtype not in _FLOATS or len(input_size) != 4 or len(output_size) != 2 or min(input_size) <= 0:
        return FALLBACK
    if grad_output.numel() < MIN_ELEMENTS["upsample_bicubic2d_backward"] or min(output_size) <= 0:
        return FALLBACK
    scales = _scales_for(input_size[2:], output_size, align_corners, scales_h, scales_w)
    if scales is None:
        return FALLBACK
    input = grad_output.new_empty(input_size)  # gives the size only
    return _polyop.bicubic_interpolate_backward.default(
        grad_output, input, scale_factor=scales, align_corners=int(align_corners)
    )


# ---- scans -----------------------------------------------------------------------------------------


def _cumulative_helper(mode: str, self: Tensor, values: Tensor, indices: Tensor, dim: int) -> Any:
    last = dim in (-1, self.dim() - 1)
    min_elements = MIN_ELEMENTS["cummax, cummin along the last dimension" if last else "cummax, cummin along another"]
    if self.dtype not in _SCANNED or self.numel() < min_elements:
        return FALLBACK
    if self.untyped_storage().data_ptr() in (t.untyped_storage().data_ptr() for t in (values, indices)):
        return FALLBACK
    return torch.ops.polyop_into.cummax.default(self, dim=dim, mode=mode, values=values, indices=indices)


# ---- normalisation ---------------------------------------------------------------------------------


def _instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """Replaces a composite of other operators, above autograd: derivatives and tracers need that composite.

    A kernel at the dispatch key CPU would make it non-composite, also for torch.export.
    """
    if input.dtype not in _FLOATS or input.numel() < MIN_ELEMENTS["instance_norm"] or input.dim() < 3:
        return FALLBACK
    if not use_input_stats or running_mean is not None or running_var is not None or not input.is_contiguous():
        return FALLBACK
    given = [t for t in (input, weight, bias) if t is not None]
    if torch.is_grad_enabled() and any(t.requires_grad for t in given):
        return FALLBACK
    if any(type(t) not in (Tensor, torch.nn.Parameter) for t in given) or _is_transformed():
        return FALLBACK
    if weight is None:
        weight = input.new_ones(input.size(1))
    if bias is None:
        bias = input.new_zeros(input.size(1))
    return _polyop.instance_norm.default(input, weight, bias, epsilon=eps)


def _is_transformed() -> bool:
    """Returns True if a dispatch mode, a torch.func transform or forward-mode derivatives are active."""
    return (
        torch._C._len_torch_dispatch_stack() > 0
        or forward_ad._current_level >= 0
        or torch._C._functorch.peek_interpreter_stack() is not None
    )


# ---- torchvision -----------------------------------------------------------------------------------


def _roi_align(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int,
    aligned: bool,
) -> Any:  # fmt: skip
    if input.dtype != torch.float32 or rois.dtype != torch.float32 or input.numel() == 0 or rois.dim() != 2:
        return FALLBACK
    if rois.size(0) * input.size(1) * pooled_height * pooled_width < MIN_ELEMENTS["roi_align"]:
        return FALLBACK
    # For boxes that are not finite, polyop returns zeros; torchvision's kernel reads out of bounds.
    return _polyop.roi_align.default(
        input, rois, output_height=pooled_height, output_width=pooled_width, spatial_scale=spatial_scale,
        sampling_ratio=sampling_ratio, mode="avg", aligned=int(aligned),
    )  # fmt: skip


def _roi_align_backward(
    grad: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int, batch_size: int,
    channels: int, height: int, width: int, sampling_ratio: int, aligned: bool,
) -> Any:  # fmt: skip
    if grad.dtype != torch.float32 or rois.dtype != torch.float32 or rois.dim() != 2:
        return FALLBACK
    if grad.numel() < MIN_ELEMENTS["_roi_align_backward"] or not _all_within(rois, 2.0**24):
        return FALLBACK
    # The gradient of an average does not depend on the values, which are not read.
    input = grad.new_empty(batch_size, channels, height, width)
    return _polyop.roi_align_backward.default(
        grad, input, rois, output_height=pooled_height, output_width=pooled_width, spatial_scale=spatial_scale,
        sampling_ratio=sampling_ratio, mode="avg", aligned=int(aligned),
    )  # fmt: skip


def _roi_pool_backward(
    grad: Tensor, rois: Tensor, argmax: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int,
    batch_size: int, channels: int, height: int, width: int,
) -> Any:  # fmt: skip
    if grad.dtype != torch.float32 or rois.dtype != torch.float32 or argmax.dtype != torch.int32 or rois.dim() != 2:
        return FALLBACK
    if grad.numel() < MIN_ELEMENTS["_roi_pool_backward"]:
        return FALLBACK
    input = grad.new_empty(batch_size, channels, height, width)  # not read: the positions are given
    return _polyop.roi_pool_backward.default(
        grad, input, rois, argmax, output_height=pooled_height, output_width=pooled_width,
        spatial_scale=spatial_scale, rounded=1,
    )  # fmt: skip


@lru_cache(maxsize=256)
def nms_threshold(iou_threshold: float) -> float:
    """Returns the float32 threshold that decides an IoU of exactly `iou_threshold` like torchvision, which divides in
    float32."""
    rounded = float32(iou_threshold)
    if rounded == iou_threshold:
        return iou_threshold
    return next_float32(rounded, -1 if rounded > iou_threshold else 2)


def _nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Any:
    if (
        dets.dtype != torch.float32
        or scores.dtype != torch.float32
        or dets.dim() != 2
        or dets.size(0) < MIN_ELEMENTS["nms"]
    ):
        return FALLBACK
    if not (_all_within(scores, math.inf) and _all_within(dets, 2.0**60)):
        return FALLBACK
    return _polyop.nms.default(dets, scores, iou_threshold=nms_threshold(iou_threshold))


def _is_deformed(operator: str, tensors: Sequence[Tensor], weight: Tensor, offset: Tensor) -> bool:
    """Returns True if polyop computes the convolution faster than torchvision, with the same result."""
    if any(t.dtype != torch.float32 for t in tensors) or offset.dim() != 4:
        return False
    if offset.size(0) * weight.size(0) * offset.size(2) * offset.size(3) < MIN_ELEMENTS[operator]:
        return False
    return _all_within(offset, 2.0**24)


def _deformed_attributes(
    stride_h: int, stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int,
    offset_groups: int, use_mask: bool,
) -> tuple[dict[str, Any], bool]:  # fmt: skip
    """Returns polyop's attributes of torchvision's last arguments, and whether the mask counts."""
    return {
        "stride": [stride_h, stride_w],
        "padding": [pad_h, pad_w],
        "dilation": [dilation_h, dilation_w],
        "groups": groups,
        "deform_groups": offset_groups,
    }, use_mask


def _deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *sizes_and_groups: Any
) -> Any:
    if not _is_deformed("deform_conv2d", (input, weight, offset, mask, bias), weight, offset):
        return FALLBACK
    shared, use_mask = _deformed_attributes(*sizes_and_groups)
    if use_mask:
        return _polyop.modulated_deform_conv2d.default(input, offset, mask, weight, bias, **shared)
    return _polyop.deform_conv2d.default(input, offset, weight, **shared).add_(bias[:, None, None])


def _deform_conv2d_backward(
    grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *sizes_and_groups: Any
) -> Any:
    """Returns the gradients of input, weight, offset, mask and bias, all of which torchvision computes."""
    if not _is_deformed("_deform_conv2d_backward", (grad, input, weight, offset, mask, bias), weight, offset):
        return FALLBACK
    shared, use_mask = _deformed_attributes(*sizes_and_groups)
    of_bias = grad.sum((0, 2, 3))
    if use_mask:
        of_input, of_offset, of_mask, of_weight = _polyop.modulated_deform_conv2d_backward.default(
            grad, input, offset, mask, weight, **shared, output_mask=15
        )[:4]
        return of_input, of_weight, of_offset, of_mask, of_bias
    of_input, of_offset, of_weight = _polyop.deform_conv2d_backward.default(grad, input, offset, weight, **shared)
    return of_input, of_weight, of_offset, torch.zeros_like(mask), of_bias


OVERRIDES = [
    Override("aten::grid_sampler_2d", partial(_grid_sampler, 2)),
    Override("aten::grid_sampler_3d", partial(_grid_sampler, 3)),
    Override("aten::grid_sampler_2d_backward", partial(_grid_sampler_backward, 2)),
    Override("aten::grid_sampler_3d_backward", partial(_grid_sampler_backward, 3)),
    Override("aten::upsample_bicubic2d", _upsample_bicubic2d),
    Override("aten::upsample_bicubic2d_backward", _upsample_bicubic2d_backward),
    Override("aten::_cummax_helper", partial(_cumulative_helper, "max")),
    Override("aten::_cummin_helper", partial(_cumulative_helper, "min")),
    Override("aten::instance_norm", _instance_norm, "AutogradCPU"),
    Override("torchvision::roi_align", _roi_align),
    Override("torchvision::_roi_align_backward", _roi_align_backward),
    Override("torchvision::_roi_pool_backward", _roi_pool_backward),
    Override("torchvision::nms", _nms),
    Override("torchvision::deform_conv2d", _deform_conv2d),
    Override("torchvision::_deform_conv2d_backward", _deform_conv2d_backward),
]
