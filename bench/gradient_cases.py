# SPDX-License-Identifier: Apache-2.0
"""Calls of every operator that has a gradient kernel, of sizes as in training, and other kernels for the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradient_rivals
import torch
import torch.nn.functional as F
from torch import Tensor

import polyop.functional as ops

Rivals = dict[str, Callable[..., Tensor]]


@dataclass
class Call:
    """A function of the tensors that have gradients. `rivals` are functions with the same arguments. `loops` are called
    with the gradient of the result and these arguments, and return the gradients.
    """

    function: Callable[..., Tensor]
    inputs: list[Tensor]
    rivals: Rivals = field(default_factory=dict)
    loops: dict[str, Callable[..., Sequence[Tensor]]] = field(default_factory=dict)

    def against_mmcv(self, loop: Callable[..., Sequence[Tensor]]) -> Call:
        """Adds MMCV's loop, if there is a checkout of MMCV."""
        if gradient_rivals.mmcv() is not None:
            self.loops["MMCV"] = loop
        return self

    def against_torchvision(self, function: Callable[..., Tensor]) -> Call:
        """Adds a function of torchvision, if there is a checkout of torchvision."""
        if gradient_rivals.torchvision() is not None:
            self.rivals["torchvision"] = function
        return self


@dataclass
class Case:
    operator: str
    title: str
    make: Callable[[], Call]


CASES: list[Case] = []


def case(operator: str, title: str) -> Callable[[Callable[[], Call]], Callable[[], Call]]:
    def add(make: Callable[[], Call]) -> Callable[[], Call]:
        CASES.append(Case(operator, title, make))
        return make

    return add


def of(operator: str, tensors: list[Tensor | None], indices: tuple[int, ...] = (0,), **attributes: Any) -> Call:
    """Returns a call of torch.ops.polyop.<operator>, with respect to the tensors with these indices."""

    def function(*given: Tensor) -> Tensor:
        full = list(tensors)
        for i, tensor in zip(indices, given, strict=True):
            full[i] = tensor
        result = getattr(torch.ops.polyop, operator)(*full, **attributes)
        return result if isinstance(result, Tensor) else result[0]

    return Call(function, [tensor for i in indices if (tensor := tensors[i]) is not None])


def torchvision_deform_conv2d(x: Tensor, offset: Tensor, weight: Tensor, mask: Tensor | None, bias: Tensor) -> Tensor:
    """Calls torchvision's operator with a kernel of 3 x 3 and a padding of 1."""
    other = torch.empty(x.shape[0], 0) if mask is None else mask
    square, masked = (1, 1, 1, 1, 1, 1, 1, 1), mask is not None
    return gradient_rivals.torchvision().deform_conv2d(x, weight, offset, other, bias, *square, masked)


# ---- regions ---------------------------------------------------------------------------------------

MAP, ROIS = (256, 100, 152), 512


def features() -> Tensor:
    return torch.randn(1, *MAP)


def boxes(count: int = ROIS, rotated: bool = False, scale: float = 1.0) -> Tensor:
    height, width = MAP[1] * scale, MAP[2] * scale
    low = torch.rand(count, 2) * torch.tensor([width * 0.7, height * 0.7])
    size = torch.rand(count, 2) * torch.tensor([width * 0.3, height * 0.3]) + 1
    rois = torch.cat([torch.zeros(count, 1), low, low + size], 1)
    return torch.cat([rois[:, :1], low + size / 2, size, torch.rand(count, 1) * 3], 1) if rotated else rois


BINS: dict[str, Any] = {"output_height": 7, "output_width": 7}
POOLED: dict[str, Any] = {"pooled_height": 7, "pooled_width": 7}
PYRAMID: dict[str, Any] = {**BINS, "sampling_ratio": 2, "featmap_strides": [4.0, 8.0, 16.0, 32.0], "finest_scale": 56}


@case("roi_align", "roi_align 256x100x152, 512 of 7x7")
def _() -> Call:
    x, rois = features(), boxes()
    call = Call(lambda t: ops.roi_align(t, rois, 7, 1.0, 2, True), [x])
    call.against_torchvision(lambda t: gradient_rivals.torchvision().roi_align(t, rois, 1.0, 7, 7, 2, True))
    return call.against_mmcv(gradient_rivals.mmcv_roi_align(x, rois, 7, 2, "avg"))


@case("roi_align", "roi_align maximum, the same")
def _() -> Call:
    x, rois = features(), boxes()
    call = of("roi_align", [x, rois], **BINS, sampling_ratio=2, mode="max")
    return call.against_mmcv(gradient_rivals.mmcv_roi_align(x, rois, 7, 2, "max"))


@case("tensorrt_roi_align", "tensorrt_roi_align maximum, the same")
def _() -> Call:
    rois, images = boxes()[:, 1:].contiguous(), torch.zeros(ROIS, dtype=torch.int32)
    return of("tensorrt_roi_align", [features(), rois, images], **BINS, sampling_ratio=2, mode="max")


@case("roi_align_rotated", "roi_align_rotated, the same")
def _() -> Call:
    rois = boxes(rotated=True)
    call = of("roi_align_rotated", [features(), rois], **BINS, sampling_ratio=2)
    return call.against_mmcv(lambda grad, t: gradient_rivals.mmcv_roi_align_rotated(grad, t, rois, 7, 2))


@case("riroi_align_rotated", "riroi_align_rotated, the same, 8 orientations")
def _() -> Call:
    return of("riroi_align_rotated", [features(), boxes(rotated=True)], **POOLED, num_samples=2, num_orientations=8)


@case("roi_pool", "roi_pool, the same")
def _() -> Call:
    rois = boxes()
    call = Call(lambda t: ops.roi_pool(t, rois, 7), [features()])
    return call.against_torchvision(lambda t: gradient_rivals.torchvision().roi_pool(t, rois, 1.0, 7, 7)[0])


@case("prroi_pool", "prroi_pool of features and boxes, the same")
def _() -> Call:
    return of("prroi_pool", [features(), boxes()], (0, 1), **POOLED)


@case("deform_roi_pool", "deform_roi_pool of features and offsets, the same")
def _() -> Call:
    return of("deform_roi_pool", [features(), boxes(), torch.randn(ROIS, 2, 7, 7)], (0, 2), **POOLED, sampling_ratio=2)


@case("bezier_align", "bezier_align 256x100x152, 64 of 8x32")
def _() -> Call:
    rois = torch.cat([torch.zeros(64, 1), torch.rand(64, 16) * 90], 1)
    call = of("bezier_align", [features(), rois], output_height=8, output_width=32, sampling_ratio=2)
    return call.against_mmcv(lambda grad, t: gradient_rivals.mmcv_bezier_align(grad, t, rois, (8, 32), 2))


@case("border_align", "border_align 256x100x152, 2,000 boxes, 10")
def _() -> Call:
    return of("border_align", [features(), boxes(2000)[None, :, 1:].contiguous()], pool_size=10)


@case("rotated_feature_align", "rotated_feature_align 256x100x152, 5 points")
def _() -> Call:
    best = torch.rand(1, *MAP[1:], 5) * torch.tensor([800.0, 1200, 40, 40, 3])
    call = of("rotated_feature_align", [features(), best], spatial_scale=0.125, points=5)
    return call.against_mmcv(lambda grad, t: gradient_rivals.mmcv_rotated_feature_align(grad, t, best, 0.125, 5))


def pyramid() -> list[Tensor]:
    return [torch.randn(1, 256, 200 >> level, 304 >> level) for level in range(4)]


@case("multi_level_roi_align", "multi_level_roi_align, 4 levels of 256x200x304, 512 of 7x7")
def _() -> Call:
    rois = boxes(scale=8)
    return Call(lambda *t: torch.ops.polyop.multi_level_roi_align(rois, t, **PYRAMID), pyramid())


@case("multi_level_rotated_roi_align", "multi_level_rotated_roi_align, the same")
def _() -> Call:
    rois = boxes(rotated=True, scale=8)
    return Call(lambda *t: torch.ops.polyop.multi_level_rotated_roi_align(rois, t, **PYRAMID), pyramid())


@case("roiaware_pool3d", "roiaware_pool3d of 20,000 points, 64 boxes, 12x12x12, 64 channels")
def _() -> Call:
    rois = torch.rand(64, 7) * torch.tensor([40.0, 40, 1, 3, 3, 3, 3]) + torch.tensor([0, 0, 0, 1.0, 1, 1, 0])
    points = torch.rand(20_000, 3) * torch.tensor([40.0, 40, 3])
    return of("roiaware_pool3d", [rois, points, torch.randn(20_000, 64)], (2,), out_size=[12, 12, 12])


# ---- convolutions ----------------------------------------------------------------------------------


@case("modulated_deform_conv2d", "modulated_deform_conv2d 2x128x64x64, 3x3")
def _() -> Call:
    tensors = [torch.randn(2, 128, 64, 64), torch.randn(2, 18, 64, 64), torch.rand(2, 9, 64, 64)]
    weights = [torch.randn(128, 128, 3, 3), torch.randn(128)]
    call = Call(lambda *t: ops.modulated_deform_conv2d(*t, padding=1), [*tensors, *weights])
    call.against_torchvision(lambda x, o, m, w, b: torchvision_deform_conv2d(x, o, w, m, b))
    return call.against_mmcv(gradient_rivals.mmcv_modulated_deform_conv2d)


@case("onnx_deform_conv", "onnx_deform_conv 2x128x64x64, 3x3")
def _() -> Call:
    inputs = [torch.randn(2, 128, 64, 64), torch.randn(128, 128, 3, 3), torch.randn(2, 18, 64, 64), torch.randn(128)]
    call = Call(
        lambda *t: torch.ops.polyop.onnx_deform_conv(*t, pads=[1, 1, 1, 1]), [*inputs, torch.rand(2, 9, 64, 64)]
    )
    return call.against_torchvision(lambda x, w, o, b, m: torchvision_deform_conv2d(x, o, w, m, b))


@case("openvino_deform_conv2d", "openvino_deform_conv2d 2x128x64x64, 3x3")
def _() -> Call:
    x, offset = torch.randn(2, 128, 64, 64), torch.randn(2, 18, 64, 64)
    return of("openvino_deform_conv2d", [x, offset, torch.randn(128, 128, 3, 3)], (0, 1, 2), pads=[1, 1, 1, 1])


@case("deform_conv2d", "deform_conv2d 2x128x64x64, 3x3")
def _() -> Call:
    inputs = [torch.randn(2, 128, 64, 64), torch.randn(2, 18, 64, 64), torch.randn(128, 128, 3, 3)]
    call, bias = Call(lambda *t: ops.deform_conv2d(*t, padding=1), inputs), torch.zeros(128)
    call.against_torchvision(lambda x, o, w: torchvision_deform_conv2d(x, o, w, None, bias))
    return call.against_mmcv(gradient_rivals.mmcv_deform_conv2d)


@case("deform_conv2d", "deform_conv2d 1x256x64x64, 3x3, depthwise")
def _() -> Call:
    inputs = [torch.randn(1, 256, 64, 64), torch.randn(1, 18, 64, 64), torch.randn(256, 1, 3, 3)]
    return Call(lambda *t: ops.deform_conv2d(*t, padding=1, groups=256), inputs)


@case("dcn_v3", "dcn_v3 1x64x64x128, 8 groups, 3x3")
def _() -> Call:
    tensors: list[Tensor | None] = [torch.randn(1, 64, 64, 128), torch.randn(1, 64, 64, 144), torch.rand(1, 64, 64, 72)]
    return of("dcn_v3", tensors, (0, 1, 2), group=8, group_channels=16, pad_h=1, pad_w=1)


@case("dcn_v4", "dcn_v4 1x64x64x128, 8 groups, 3x3")
def _() -> Call:
    tensors: list[Tensor | None] = [torch.randn(1, 64, 64, 128), torch.randn(1, 64, 64, 216)]
    return of("dcn_v4", tensors, (0, 1), group=8, group_channels=16, pad_h=1, pad_w=1)


@case("masked_conv2d", "masked_conv2d 256x50x76, 3x3, half of the positions")
def _() -> Call:
    tensors = [torch.randn(1, 256, 50, 76), torch.rand(1, 50, 76) - 0.5, torch.randn(256, 256, 3, 3), torch.randn(256)]
    return of("masked_conv2d", [*tensors], (0, 2, 3), padding=[1, 1])


def voxels(count: int = 30_000) -> Tensor:
    positions = torch.randperm(16 * 200 * 176)[:count]
    return torch.stack([positions * 0, positions // (200 * 176), positions // 176 % 200, positions % 176], 1).int()


@case("implicit_gemm", "implicit_gemm 30,000 voxels, 3x3x3, 16 to 32 channels")
def _() -> Call:
    _, fwd, mask, order, _ = ops.get_indice_pairs_implicit_gemm(voxels(), 1, [16, 200, 176], [3] * 3, subm=True)
    tensors = [torch.randn(30_000, 16), torch.randn(32, 3, 3, 3, 16), fwd, mask, order]
    return of("implicit_gemm", [*tensors, None], (0, 1), is_subm=1)


@case("indice_conv", "indice_conv, the same")
def _() -> Call:
    _, pairs, counts, found = ops.get_indice_pairs(voxels(), 1, [16, 200, 176], [3] * 3, subm=True)
    return of(
        "indice_conv", [torch.randn(30_000, 16), torch.randn(32, 3, 3, 3, 16), pairs, counts, found], (0, 1), is_subm=1
    )


@case("active_rotated_filter", "active_rotated_filter 64x32x8x3x3, 8 rotations")
def _() -> Call:
    indices = torch.stack([torch.randperm(72) for _ in range(8)], 1).reshape(8, 3, 3, 8) + 1
    call = of("active_rotated_filter", [torch.randn(64, 32, 8, 3, 3), indices])
    return call.against_mmcv(lambda grad, t: gradient_rivals.mmcv_active_rotated_filter(grad, t, indices.int()))


# ---- attention and sampling ------------------------------------------------------------------------

SHAPES = torch.tensor([[76, 100], [38, 50], [19, 25], [10, 13]])
SUM = int(SHAPES.prod(1).sum())
STARTS = SHAPES.prod(1).cumsum(0) - SHAPES.prod(1)
QUERIES = 2000


@case("ms_deform_attn", "ms_deform_attn, 4 levels, 2,000 queries")
def _() -> Call:
    tensors = [torch.randn(1, SUM, 8, 32), SHAPES, STARTS, torch.rand(1, QUERIES, 8, 4, 4, 2)]
    return of("ms_deform_attn", [*tensors, torch.rand(1, QUERIES, 8, 4, 4)], (0, 3, 4))


@case("ms_deform_attn", "ms_deform_attn, 4 levels, all pixels as queries")
def _() -> Call:
    tensors = [torch.randn(1, SUM, 8, 32), SHAPES, STARTS, torch.rand(1, SUM, 8, 4, 4, 2)]
    return of("ms_deform_attn", [*tensors, torch.rand(1, SUM, 8, 4, 4)], (0, 3, 4))


@case("ms_deform_attn_by_head", "ms_deform_attn_by_head, 4 levels, 2,000 queries")
def _() -> Call:
    tensors = [torch.randn(1, SUM, 8, 32), SHAPES, STARTS, torch.rand(1, QUERIES, 8, 4, 4, 2)]
    return of("ms_deform_attn_by_head", [*tensors, torch.rand(1, QUERIES, 8, 4, 4)], (0, 3, 4))


@case("ms_deform_attn_of_offsets", "ms_deform_attn_of_offsets, the same")
def _() -> Call:
    tensors = [torch.randn(1, SUM, 8, 32), SHAPES, torch.rand(1, QUERIES, 1, 4), torch.randn(1, QUERIES, 8, 32)]
    return of("ms_deform_attn_of_offsets", [*tensors, torch.randn(1, QUERIES, 8, 16)], (0, 2, 3, 4))


@case("flash_deform_attn", "flash_deform_attn, the same")
def _() -> Call:
    rows = torch.cat([torch.rand(1, QUERIES, 8, 32), torch.randn(1, QUERIES, 8, 16)], 3)
    return of("flash_deform_attn", [torch.randn(1, SUM, 8, 32), SHAPES, STARTS, rows], (0, 3), points=4)


@case("qkv_attention", "qkv_attention 16x1,024, 32 channels")
def _() -> Call:
    tensors = [torch.randn(16, 1024, 32) for _ in range(3)]
    return Call(torch.ops.polyop.qkv_attention, tensors, {"PyTorch": F.scaled_dot_product_attention})


@case("neighborhood_attention", "neighborhood_attention 1x56x56, 4 heads of 32, 7x7")
def _() -> Call:
    tensors: list[Tensor | None] = [torch.randn(1, 56, 56, 4, 32) for _ in range(3)]
    return of("neighborhood_attention", tensors, (0, 1, 2), kernel_size=[7])


@case("selective_scan", "selective_scan 2x512, 1,024 steps, 16 states")
def _() -> Call:
    u, delta = torch.randn(2, 512, 1024), torch.rand(2, 512, 1024)
    tensors = [u, delta, -torch.rand(512, 16), torch.randn(2, 1, 16, 1024), torch.randn(2, 1, 16, 1024)]
    return of("selective_scan", [*tensors, None, None, None, None], (0, 1, 2, 3, 4))


@case("causal_conv1d", "causal_conv1d 2x512, 4,096 steps, width 4")
def _() -> Call:
    tensors: list[Tensor | None] = [torch.randn(2, 512, 4096), torch.randn(512, 4), torch.randn(512)]
    return of("causal_conv1d", [*tensors, None], (0, 1, 2), activation="silu")


def grid_case(mode: str, smooth: bool) -> Call:
    grid = torch.rand(1, 200, 200, 2) * 2 - 1
    if smooth:
        grid = F.affine_grid(torch.tensor([[[0.9, 0.1, 0], [-0.1, 0.9, 0]]]), [1, 1, 200, 200], align_corners=False)
    return Call(
        lambda t, g: ops.grid_sample(t, g, mode), [torch.randn(1, 64, 200, 200), grid],
        {"PyTorch": lambda t, g: F.grid_sample(t, g, mode, align_corners=False)},
    )  # fmt: skip


case("grid_sampler", "grid_sample 64x200x200, random")(lambda: grid_case("bilinear", False))
case("grid_sampler", "grid_sample 64x200x200, rotated")(lambda: grid_case("bilinear", True))
case("grid_sampler", "grid_sample nearest 64x200x200, random")(lambda: grid_case("nearest", False))
case("grid_sampler", "grid_sample bicubic 64x200x200, random")(lambda: grid_case("bicubic", False))


@case("grid_sampler", "grid_sample 16x32x64x64, random")
def _() -> Call:
    return Call(
        ops.grid_sample, [torch.randn(1, 16, 32, 64, 64), torch.rand(1, 32, 64, 64, 3) * 2 - 1],
        {"PyTorch": lambda t, g: F.grid_sample(t, g, align_corners=False)},
    )  # fmt: skip


@case("planar_grid_sampler", "planar_grid_sampler 64x200x200, random")
def _() -> Call:
    return of("planar_grid_sampler", [torch.randn(1, 64, 200, 200), torch.rand(1, 2, 200, 200) * 20 - 10], (0, 1))


@case("rotate", "rotate 64x200x200 by 30 degrees")
def _() -> Call:
    return of("rotate", [torch.randn(64, 200, 200), torch.tensor(30.0), torch.tensor([100.0, 100])], (0, 1, 2))


def resized(channels: int, size: int, scale: float) -> Call:
    return Call(
        lambda t: torch.ops.polyop.bicubic_interpolate(t, scale_factor=[scale, scale]),
        [torch.randn(1, channels, size, size)],
        {"PyTorch": lambda t: F.interpolate(t, scale_factor=scale, mode="bicubic")},
    )


case("bicubic_interpolate", "bicubic_interpolate 64x64x64 by 2")(lambda: resized(64, 64, 2.0))
case("bicubic_interpolate", "bicubic_interpolate 3x360x360 by 2")(lambda: resized(3, 360, 2.0))
case("bicubic_interpolate", "bicubic_interpolate 64x200x200 by 0.5")(lambda: resized(64, 200, 0.5))


@case("cubic_resize", "cubic_resize 64x64x64 to 128x128")
def _() -> Call:
    return of("cubic_resize", [torch.randn(1, 64, 64, 64), torch.tensor([128, 128])])


@case("dynamic_resize", "dynamic_resize 64x64x64 by 2")
def _() -> Call:
    return of("dynamic_resize", [torch.randn(1, 64, 64, 64), torch.tensor([1.0, 1, 2, 2])])


@case("carafe", "carafe 64x50x76, 5, x2")
def _() -> Call:
    masks = torch.rand(1, 25, 100, 152).softmax(1)
    return Call(lambda t, m: ops.carafe(t, m, 5, 1, 2), [torch.randn(1, 64, 50, 76), masks])


# ---- images ----------------------------------------------------------------------------------------


@case("instance_norm", "instance_norm 8x64x128x128")
def _() -> Call:
    return Call(
        torch.ops.polyop.instance_norm, [torch.randn(8, 64, 128, 128), torch.randn(64), torch.randn(64)],
        {"PyTorch": lambda x, w, b: F.instance_norm(x, weight=w, bias=b)},
    )  # fmt: skip


@case("corner_pool", "corner_pool 1x128x128x128")
def _() -> Call:
    return Call(lambda t: ops.corner_pool(t, "left"), [torch.randn(1, 128, 128, 128)])


def scanned(dim: int) -> Call:
    return Call(
        lambda t: ops.cummax(t, dim)[0], [torch.randn(64, 256, 256)], {"PyTorch": lambda t: torch.cummax(t, dim)[0]}
    )


case("cummax", "cummax 64x256x256 along 1")(lambda: scanned(1))
case("cummax", "cummax 64x256x256 along 2")(lambda: scanned(2))


@case("correlation", "correlation 64x48x64, displacements of 4")
def _() -> Call:
    tensors: list[Tensor | None] = [torch.randn(1, 64, 48, 64), torch.randn(1, 64, 48, 64)]
    return of("correlation", tensors, (0, 1), max_displacement=4)


@case("correlation_lookup", "correlation_lookup 2,048 pixels, maps of 32x64, radius 4")
def _() -> Call:
    return of("correlation_lookup", [torch.randn(1, 32, 64, 32, 64), torch.rand(1, 2, 32, 64) * 48], (0,))


@case("psa_mask", "psa_mask 2x59x59x30x30")
def _() -> Call:
    call = of("psa_mask", [torch.randn(2, 59 * 59, 30, 30)], mask_size=[59, 59])
    return call.against_mmcv(lambda grad, t: gradient_rivals.mmcv_psa_mask(grad, t, 59))


# ---- points and cells ------------------------------------------------------------------------------


@case("three_interpolate", "three_interpolate 8x256, 1,024 to 4,096 points")
def _() -> Call:
    weight = torch.rand(8, 4096, 3).softmax(2)
    indices = torch.randint(1024, (8, 4096, 3))
    return of("three_interpolate", [torch.randn(8, 256, 1024), indices, weight], (0, 2))


@case("group_points", "group_points 8x64, 4,096 points, 1,024 groups of 32")
def _() -> Call:
    return of("group_points", [torch.randn(8, 64, 4096), torch.randint(4096, (8, 1024, 32))])


@case("gather_points", "gather_points 8x64, 4,096 points, 1,024 of them")
def _() -> Call:
    return of("gather_points", [torch.randn(8, 64, 4096), torch.randint(4096, (8, 1024)).int()])


@case("assign_score_withk", "assign_score_withk 2x512, 32 neighbours, 8 kernels, 64 channels")
def _() -> Call:
    tensors = [torch.rand(2, 512, 32, 8), torch.randn(2, 1024, 8, 64), torch.randn(2, 1024, 8, 64)]
    return of("assign_score_withk", [*tensors, torch.randint(1024, (2, 512, 32))], (0, 1, 2))


@case("chamfer_distance", "chamfer_distance 4x2,048 points")
def _() -> Call:
    tensors: list[Tensor | None] = [torch.randn(4, 2048, 3), torch.randn(4, 2048, 3)]
    return of("chamfer_distance", tensors, (0, 1))


@case("diff_iou_rotated", "diff_iou_rotated 20,000 pairs of 3-D boxes")
def _() -> Call:
    a = torch.cat([torch.rand(20_000, 3) * 70, torch.rand(20_000, 3) * 3 + 1, torch.rand(20_000, 1) * 6], 1)
    b = a + torch.randn(20_000, 7) * 0.2
    call = of("diff_iou_rotated", [a[None], b[None]], (0, 1), dimensions=3)
    composed = gradient_rivals.mmcv_diff_iou_rotated()
    if composed is not None:
        call.rivals["MMCV"] = composed.diff_iou_rotated_3d
    return call


@case("dynamic_scatter", "dynamic_scatter 60,000x64, maximum")
def _() -> Call:
    coors = torch.stack([torch.zeros(60_000), torch.randint(200, (60_000,)), torch.randint(176, (60_000,))], 1).int()
    return of("dynamic_scatter", [torch.randn(60_000, 64), coors], reduce_type="max")


def segments(reduce: str) -> Call:
    ends = torch.arange(0, 60_001, 10)
    return of("segment_csr", [torch.rand(60_000, 64) + 0.5, ends], reduce=reduce)


for _reduce in ("sum", "mean", "mul", "max"):
    case("segment_csr", f"segment_csr 60,000x64, tens, {_reduce}")(lambda r=_reduce: segments(r))


@case("pillar_scatter", "pillar_scatter 12,000x64 to 496x432")
def _() -> Call:
    positions = torch.randperm(496 * 432)[:12_000]
    coors = torch.stack([positions * 0, positions * 0, positions // 432, positions % 432], 1)
    return of("pillar_scatter", [torch.randn(12_000, 64), coors, None], dense_shape=[496, 432], batch_size=1)


def ranks(points: int, cells: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the cells of points, in ascending order, and the starts and lengths of equal cells."""
    of_points = torch.randint(cells, (points,)).sort()[0]
    lengths = torch.unique_consecutive(of_points, return_counts=True)[1]
    return of_points.int(), (lengths.cumsum(0) - lengths).int(), lengths.int()


def bev(operator: str, **attributes: int) -> Call:
    cells, starts, lengths = ranks(150_000, 128 * 128)
    depth, feat = torch.rand(6, 59, 16, 44), torch.randn(6, 16, 44, 80)
    at_depth, at_feat = torch.randint(depth.numel(), (150_000,)).int(), torch.randint(6 * 16 * 44, (150_000,)).int()
    tensors = [depth, feat, at_depth, at_feat, cells, starts, lengths]
    return of(operator, [*tensors], (0, 1), out_height=128, out_width=128, **attributes)


case("bev_pool", "bev_pool 150,000 points, 80 channels to 128x128")(lambda: bev("bev_pool"))
case("bev_pool_volume", "bev_pool_volume, the same")(lambda: bev("bev_pool_volume", output_z=2))


@case("quick_cumsum", "quick_cumsum, the same")
def _() -> Call:
    cells, starts, lengths = ranks(150_000, 128 * 128)
    positions = torch.stack([cells // 128, cells % 128, cells * 0, cells * 0], 1)
    tensors = [torch.randn(150_000, 80), positions, lengths, starts]
    return of("quick_cumsum", [*tensors], batch_size=1, dimension=1, height=128, width=128)
