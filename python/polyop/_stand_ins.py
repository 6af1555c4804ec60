"""Which operators of PyTorch's and torchvision's polyop's kernels stand in for, and which calls of them.

A kernel here gets the arguments of the operator that it stands in for, below autograd. It returns the result, strides and
all, or OWN where the call is PyTorch's own kernel's: the type has no kernel of polyop's, the call is too small to gain, or
PyTorch's result is another one (coordinates that are not finite). What polyop refuses, by RuntimeError, is left likewise.
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

from polyop import _gradients  # noqa: F401 - the operators with all that belongs to them

OWN = object()
"""Says that the call is PyTorch's own kernel's."""

# With fewer elements in the result, or channels, a call is PyTorch's own kernel's: there polyop's kernels gain nothing, or
# less than a call from Python costs. Measured for one thread, by bench/accelerated.py.
LEAST = {
    "grid_sampler_2d bilinear": 1 << 16,
    "grid_sampler_2d nearest": 1 << 21,
    "grid_sampler_2d bicubic": 1 << 13,
    "grid_sampler_3d": 1 << 11,
    "upsample_bicubic2d": 1 << 10,
    "cummax, cummin along the last dimension": 1 << 14,
    "cummax, cummin along another": 1 << 12,
    "instance_norm": 1 << 8,
    "roi_align": 1 << 12,
    "nms": 1 << 6,
    "deform_conv2d": 1 << 10,
}
LEAST_CHANNELS = {
    "grid_sampler_2d bilinear": 16,
    "grid_sampler_2d nearest": 32,
    "grid_sampler_2d bicubic": 8,
    "grid_sampler_3d": 1,
}

_FLOATS = frozenset({torch.float32, torch.float16, torch.bfloat16})
_SCANNED = _FLOATS | {torch.int32, torch.int64}
_INTERPOLATION = ("bilinear", "nearest", "bicubic")
_PADDING = ("zeros", "border", "reflection")
# Beyond so many pictures' widths, and for NaN, PyTorch's sampling is rounding or undefined: it is left alone.
_FAR = 1000.0

_polyop = torch.ops.polyop


@dataclass(frozen=True)
class StandIn:
    """A kernel for an operator at a dispatch key."""

    name: str
    kernel: Callable[..., Any]
    key: str = "CPU"


def _all_within(values: Tensor, bound: float) -> bool:
    low, high = values.aminmax()
    return -bound <= low.item() and high.item() <= bound  # NaN is neither


# ---- sampling --------------------------------------------------------------------------------------


def _grid_sampler(
    axes: int, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    # Half types: PyTorch rounds coordinates to them, polyop does not.
    if input.dtype != torch.float32 or grid.dtype != torch.float32 or input.dim() != axes + 2:
        return OWN
    if not (0 <= interpolation_mode < 3 and 0 <= padding_mode < 3):
        return OWN
    size = f"grid_sampler_2d {_INTERPOLATION[interpolation_mode]}" if axes == 2 else "grid_sampler_3d"
    channels = input.size(1)
    if channels < LEAST_CHANNELS[size] or grid.numel() // axes * channels < LEAST[size]:
        return OWN
    if not _all_within(grid, _FAR):
        return OWN
    return _polyop.grid_sampler.default(
        input, grid, interpolation_mode=_INTERPOLATION[interpolation_mode], padding_mode=_PADDING[padding_mode],
        align_corners=int(align_corners),
    )  # fmt: skip


# ---- resizing --------------------------------------------------------------------------------------


def _float32(value: float) -> float:
    return torch.tensor(value, dtype=torch.float32, device="cpu").item()


def _next_float32(value: float, towards: float) -> float:
    number, other = (torch.tensor(v, dtype=torch.float32, device="cpu") for v in (value, towards))
    return number.nextafter(other).item()


@lru_cache(maxsize=4096)
def _scale_for(inputs: int, outputs: int, align_corners: bool, scale: float | None) -> float | None:
    """The float32 by which bicubic_interpolate makes `outputs` pixels of `inputs`, where PyTorch samples; or None.

    PyTorch rounds coordinates to float32; this scale is at most two roundings from its.
    """
    if align_corners:  # the scale says the extent alone
        return (outputs + 0.5) / inputs
    given = _float32(scale if scale is not None and scale > 0 else outputs / inputs)
    if math.floor(inputs * given) < outputs:
        given = _next_float32(given, math.inf)
    return given if math.floor(inputs * given) == outputs else None


def _upsample_bicubic2d(
    self: Tensor,
    output_size: Sequence[int],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Any:
    if self.dtype not in _FLOATS or self.dim() != 4 or self.numel() == 0:
        return OWN
    if len(output_size) != 2 or min(output_size) <= 0:
        return OWN
    pictures, channels, height, width = self.shape
    if pictures * channels * output_size[0] * output_size[1] < LEAST["upsample_bicubic2d"]:
        return OWN
    # The result has the memory format of the input.
    plain = self.is_contiguous() and self.stride(1) == height * width
    if not (plain or (channels > 1 and self.is_contiguous(memory_format=torch.channels_last))):
        return OWN
    scales = [
        _scale_for(height, output_size[0], align_corners, scales_h),
        _scale_for(width, output_size[1], align_corners, scales_w),
    ]
    if None in scales:
        return OWN
    made = _polyop.bicubic_interpolate.default(self, scale_factor=scales, align_corners=int(align_corners))
    return made if plain else made.contiguous(memory_format=torch.channels_last)


# ---- scans -----------------------------------------------------------------------------------------


def _cumulative_helper(mode: str, self: Tensor, values: Tensor, indices: Tensor, dim: int) -> Any:
    last = dim in (-1, self.dim() - 1)
    least = LEAST["cummax, cummin along the last dimension" if last else "cummax, cummin along another"]
    if self.dtype not in _SCANNED or self.numel() < least:
        return OWN
    if self.untyped_storage().data_ptr() == values.untyped_storage().data_ptr():
        return OWN
    return torch.ops.polyop_into.cummax.default(self, dim=dim, mode=mode, values=values, indices=indices)


# ---- normalisation ---------------------------------------------------------------------------------


def _instance_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
    running_var: Tensor | None, use_input_stats: bool, momentum: float, eps: float, cudnn_enabled: bool,
) -> Any:  # fmt: skip
    """Not below autograd, but in the place of a composite of other operators, which derivatives and tracers need.

    With a kernel at the key CPU it would be no composite any more, for torch.export too.
    """
    if input.dtype not in _FLOATS or input.numel() < LEAST["instance_norm"] or input.dim() < 3:
        return OWN
    if not use_input_stats or running_mean is not None or running_var is not None or not input.is_contiguous():
        return OWN
    given = [t for t in (input, weight, bias) if t is not None]
    if torch.is_grad_enabled() and any(t.requires_grad for t in given):
        return OWN
    if any(type(t) not in (Tensor, torch.nn.Parameter) for t in given) or _is_transformed():
        return OWN
    if weight is None:
        weight = input.new_ones(input.size(1))
    if bias is None:
        bias = input.new_zeros(input.size(1))
    return _polyop.instance_norm.default(input, weight, bias, epsilon=eps)


def _is_transformed() -> bool:
    """Whether a mode looks at operators, or a transform of torch.func or forward derivatives are under way."""
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
        return OWN
    if rois.size(0) * input.size(1) * pooled_height * pooled_width < LEAST["roi_align"]:
        return OWN
    # Of boxes that are not finite polyop makes zeros; torchvision's kernel reads anywhere.
    return _polyop.roi_align.default(
        input, rois, output_height=pooled_height, output_width=pooled_width, spatial_scale=spatial_scale,
        sampling_ratio=sampling_ratio, mode="avg", aligned=int(aligned),
    )  # fmt: skip


@lru_cache(maxsize=256)
def _threshold_for(iou_threshold: float) -> float:
    """The float32 that decides an IoU of exactly `iou_threshold` as torchvision does: by the quotient in float32."""
    rounded = _float32(iou_threshold)
    if rounded == iou_threshold:
        return iou_threshold
    return _next_float32(rounded, -1 if rounded > iou_threshold else 2)


def _nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Any:
    if dets.dtype != torch.float32 or scores.dtype != torch.float32 or dets.dim() != 2 or dets.size(0) < LEAST["nms"]:
        return OWN
    if not (_all_within(scores, math.inf) and _all_within(dets, 2.0**60)):
        return OWN
    return _polyop.nms.default(dets, scores, iou_threshold=_threshold_for(iou_threshold))


def _deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, stride_h: int, stride_w: int, pad_h: int,
    pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Any:  # fmt: skip
    if any(t.dtype != torch.float32 for t in (input, weight, offset, mask, bias)) or offset.dim() != 4:
        return OWN
    if offset.size(0) * weight.size(0) * offset.size(2) * offset.size(3) < LEAST["deform_conv2d"]:
        return OWN
    if not _all_within(offset, 2.0**24):
        return OWN
    shared = {
        "stride": [stride_h, stride_w], "padding": [pad_h, pad_w], "dilation": [dilation_h, dilation_w],
        "groups": groups, "deform_groups": offset_groups,
    }  # fmt: skip
    if use_mask:
        return _polyop.modulated_deform_conv2d.default(input, offset, mask, weight, bias, **shared)
    return _polyop.deform_conv2d.default(input, offset, weight, **shared).add_(bias[:, None, None])


STAND_INS = [
    StandIn("aten::grid_sampler_2d", partial(_grid_sampler, 2)),
    StandIn("aten::grid_sampler_3d", partial(_grid_sampler, 3)),
    StandIn("aten::upsample_bicubic2d", _upsample_bicubic2d),
    StandIn("aten::_cummax_helper", partial(_cumulative_helper, "max")),
    StandIn("aten::_cummin_helper", partial(_cumulative_helper, "min")),
    StandIn("aten::instance_norm", _instance_norm, "AutogradCPU"),
    StandIn("torchvision::roi_align", _roi_align),
    StandIn("torchvision::nms", _nms),
    StandIn("torchvision::deform_conv2d", _deform_conv2d),
]
