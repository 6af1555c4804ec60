# SPDX-License-Identifier: Apache-2.0
"""MMCV's operators: its compiled module, or the functions and layers of MMCV 1.x's `mmcv.ops`.

import polyop.compat.mmcv   # now `import mmcv.ops` works with the wheel mmcv-lite: polyop is `mmcv._ext`

import polyop.compat.mmcv as mmcv_ops   # functions and layers of MMCV 1.x, without MMCV

`python -m polyop.compat.mmcv script.py …` runs a script that way; with POLYOP_MMCV=1 `import polyop` is enough.
status() prints which operator provides each function. Functions have the arguments and results of MMCV 1.x, except for
old names of arguments (`iou_thr`, `out_size`, `sample_num`), which MMCV itself deprecated.
"""

from __future__ import annotations

import math
import runpy
import sys
from collections.abc import Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from polyop import functional, get_onnxruntime_op_path, modules, sparse
from polyop.compat import mmcv_ext
from polyop.compat.mmcv_ext import install, status
from polyop.functional import (
    active_rotated_filter,
    assign_score_withk,
    ball_query,
    bezier_align,
    border_align,
    box_iou_quadri,
    box_iou_rotated,
    boxes_iou3d,
    boxes_overlap_bev,
    carafe,
    chamfer_distance,
    convex_giou,
    convex_iou,
    corner_pool,
    deform_roi_pool,
    diff_iou_rotated_2d,
    diff_iou_rotated_3d,
    furthest_point_sample,
    furthest_point_sample_with_dist,
    gather_points,
    grouping_operation,
    knn,
    masked_conv2d,
    min_area_polygons,
    modulated_deform_conv2d,
    nms3d,
    nms3d_normal,
    points_in_boxes_all,
    points_in_boxes_part,
    prroi_pool,
    riroi_align_rotated,
    roi_align_rotated,
    three_interpolate,
    three_nn,
    voxelization,
)
from polyop.modules import (
    CARAFEPack,
    CornerPool,
    ModulatedDeformConv2d,
    ModulatedDeformConv2dPack,
    PSAMask,
    RoIAlignRotated,
    RoIAwarePool3d,
    RoIPointPool3d,
)
from polyop.sparse import SparseConvTensor, SparseModule, SparseSequential

__all__ = [
    "BezierAlign",
    "CARAFEPack",
    "CornerPool",
    "Correlation",
    "DeformConv2d",
    "DeformConv2dPack",
    "DynamicScatter",
    "ModulatedDeformConv2d",
    "ModulatedDeformConv2dPack",
    "MultiScaleDeformableAttention",
    "PSAMask",
    "RiRoIAlignRotated",
    "RoIAlign",
    "RoIAlignRotated",
    "RoIAwarePool3d",
    "RoIPointPool3d",
    "RoIPool",
    "SparseConv2d",
    "SparseConv3d",
    "SparseConvTensor",
    "SparseConvTranspose3d",
    "SparseInverseConv3d",
    "SparseMaxPool2d",
    "SparseMaxPool3d",
    "SparseModule",
    "SparseSequential",
    "SubMConv2d",
    "SubMConv3d",
    "Voxelization",
    "active_rotated_filter",
    "assign_score_withk",
    "ball_query",
    "batched_nms",
    "bezier_align",
    "border_align",
    "box_iou_quadri",
    "box_iou_rotated",
    "boxes_iou3d",
    "boxes_overlap_bev",
    "carafe",
    "chamfer_distance",
    "convex_giou",
    "convex_iou",
    "corner_pool",
    "deform_conv2d",
    "deform_roi_pool",
    "diff_iou_rotated_2d",
    "diff_iou_rotated_3d",
    "dynamic_scatter",
    "furthest_point_sample",
    "furthest_point_sample_with_dist",
    "gather_points",
    "get_onnxruntime_op_path",
    "grouping_operation",
    "install",
    "knn",
    "masked_conv2d",
    "min_area_polygons",
    "modulated_deform_conv2d",
    "multi_scale_deformable_attn",
    "nms",
    "nms3d",
    "nms3d_normal",
    "nms_match",
    "nms_rotated",
    "points_in_boxes_all",
    "points_in_boxes_part",
    "points_in_polygons",
    "prroi_pool",
    "riroi_align_rotated",
    "roi_align",
    "roi_align_rotated",
    "roi_pool",
    "rotated_feature_align",
    "soft_nms",
    "status",
    "three_interpolate",
    "three_nn",
    "voxelization",
]


# ---- features --------------------------------------------------------------------------------------


def roi_align(
    input: Tensor,
    rois: Tensor,
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    pool_mode: str = "avg",
    aligned: bool = True,
) -> Tensor:
    """rois [R, 5] (image, x1, y1, x2, y2) -> [R, C, h, w]. Unlike torchvision's, aligned by default."""
    return functional.roi_align(input, rois, output_size, spatial_scale, sampling_ratio, aligned, pool_mode)


class RoIAlign(modules.RoIAlign):
    """`roi_align` as a layer. `use_torchvision` is ignored: the results are the same."""

    def __init__(
        self,
        output_size: int | Sequence[int],
        spatial_scale: float = 1.0,
        sampling_ratio: int = 0,
        pool_mode: str = "avg",
        aligned: bool = True,
        use_torchvision: bool = False,
    ) -> None:
        super().__init__(output_size, spatial_scale, sampling_ratio, aligned, pool_mode)
        self.use_torchvision = use_torchvision


def roi_pool(input: Tensor, rois: Tensor, output_size: int | Sequence[int], spatial_scale: float = 1.0) -> Tensor:
    """The maximum of each bin: rois [R, 5] -> [R, C, h, w]. Unlike torchvision's, corners are not rounded."""
    return functional.roi_pool(input, rois, output_size, spatial_scale, rounded=False)


class RoIPool(nn.Module):
    """`roi_pool` as a layer."""

    def __init__(self, output_size: int | Sequence[int], spatial_scale: float = 1.0) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale

    def forward(self, input: Tensor, rois: Tensor) -> Tensor:
        return roi_pool(input, rois, self.output_size, self.spatial_scale)


class RiRoIAlignRotated(nn.Module):
    """`riroi_align_rotated` as a layer."""

    def __init__(
        self,
        out_size: int | Sequence[int],
        spatial_scale: float,
        num_samples: int = 0,
        num_orientations: int = 8,
        clockwise: bool = False,
    ) -> None:
        super().__init__()
        self.out_size, self.spatial_scale = out_size, spatial_scale
        self.num_samples, self.num_orientations, self.clockwise = num_samples, num_orientations, clockwise

    def forward(self, features: Tensor, rois: Tensor) -> Tensor:
        return riroi_align_rotated(
            features, rois, self.out_size, self.spatial_scale, self.num_samples, self.num_orientations, self.clockwise
        )


class BezierAlign(nn.Module):
    """`bezier_align` as a layer."""

    def __init__(
        self, output_size: int | Sequence[int], spatial_scale: float, sampling_ratio: int, aligned: bool = True
    ) -> None:
        super().__init__()
        self.output_size, self.spatial_scale = output_size, spatial_scale
        self.sampling_ratio, self.aligned = sampling_ratio, aligned

    def forward(self, input: Tensor, beziers: Tensor) -> Tensor:
        return bezier_align(input, beziers, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned)


class Correlation(nn.Module):
    """`functional.correlation` as a layer."""

    def __init__(
        self,
        kernel_size: int = 1,
        max_displacement: int = 1,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        dilation_patch: int = 1,
    ) -> None:
        super().__init__()
        self.kernel_size, self.max_displacement, self.stride = kernel_size, max_displacement, stride
        self.padding, self.dilation, self.dilation_patch = padding, dilation, dilation_patch

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return functional.correlation(
            input1, input2, self.kernel_size, self.max_displacement, self.stride, self.padding, self.dilation,
            self.dilation_patch,
        )  # fmt: skip


# Arguments of MMCV's kernels and configurations that are accepted and ignored.


def deform_conv2d(
    input: Tensor,
    offset: Tensor,
    weight: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    deform_groups: int = 1,
    bias: bool = False,
    im2col_step: int = 32,
) -> Tensor:
    """Version 1: offset [N, 2 * deform_groups * kh * kw, oh, ow]. It has no bias, as in MMCV."""
    if bias:
        raise ValueError("bias: expected False, got True: use modulated_deform_conv2d")
    del im2col_step
    return functional.deform_conv2d(input, offset, weight, stride, padding, dilation, groups, deform_groups)


class _TakesIm2colStep:
    def __init__(self, *args, im2col_step: int = 32, **given) -> None:
        del im2col_step
        super().__init__(*args, **given)


class DeformConv2d(_TakesIm2colStep, modules.DeformConv2d):
    """`modules.DeformConv2d` with MMCV's arguments."""


class DeformConv2dPack(_TakesIm2colStep, modules.DeformConv2dPack):
    """`modules.DeformConv2dPack` with MMCV's arguments."""


class MultiScaleDeformableAttention(modules.MultiScaleDeformableAttention):
    def __init__(
        self,
        embed_dims: int = 256,
        num_heads: int = 8,
        num_levels: int = 4,
        num_points: int = 4,
        im2col_step: int = 64,
        dropout: float = 0.1,
        batch_first: bool = False,
        norm_cfg: object = None,
        init_cfg: object = None,
    ) -> None:
        del im2col_step, norm_cfg, init_cfg
        super().__init__(embed_dims, num_heads, num_levels, num_points, dropout, batch_first)


class _MmcvWeights:
    """A mixin for weights [*kernel_size, in_channels, out_channels], as in MMCV's checkpoints."""

    def _weight_shape(self) -> tuple[int, ...]:
        return (*self.kernel_size, self.in_channels, self.out_channels)

    def _filters(self) -> Tensor:
        return self.weight.movedim(-1, 0).contiguous()

    def reset_parameters(self) -> None:
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_channels * math.prod(self.kernel_size))
            nn.init.uniform_(self.bias, -bound, bound)


class _FromZero:
    """A mixin for maxima that start at 0, as those of MMCV's kernel do: the maximum of -1 and -2 is 0."""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
    ) -> None:
        super().__init__(kernel_size, stride, padding, dilation)

    def forward(self, x: SparseConvTensor) -> SparseConvTensor:
        out = super().forward(x)
        return out.replace_feature(out.features.relu())


class SparseMaxPool2d(_FromZero, sparse.SparseMaxPool2d):
    """`sparse.SparseMaxPool2d` with MMCV's arguments and its maxima from 0."""


class SparseMaxPool3d(_FromZero, sparse.SparseMaxPool3d):
    """`sparse.SparseMaxPool3d` with MMCV's arguments and its maxima from 0."""


class SparseConv2d(_MmcvWeights, sparse.SparseConv2d):
    """`sparse.SparseConv2d` with MMCV's weights."""


class SparseConv3d(_MmcvWeights, sparse.SparseConv3d):
    """`sparse.SparseConv3d` with MMCV's weights."""


class SparseConvTranspose3d(_MmcvWeights, sparse.SparseConvTranspose3d):
    """`sparse.SparseConvTranspose3d` with MMCV's weights."""


class SparseInverseConv3d(_MmcvWeights, sparse.SparseInverseConv3d):
    """`sparse.SparseInverseConv3d` with MMCV's weights."""


class SubMConv2d(_MmcvWeights, sparse.SubMConv2d):
    """`sparse.SubMConv2d` with MMCV's weights."""


class SubMConv3d(_MmcvWeights, sparse.SubMConv3d):
    """`sparse.SubMConv3d` with MMCV's weights."""


def rotated_feature_align(
    features: Tensor, best_rbboxes: Tensor, spatial_scale: float = 1 / 8, points: int = 1
) -> Tensor:
    """features [N, C, H, W], best_rbboxes [N, H, W, 5] -> [N, C, H, W]."""
    return torch.ops.polyop.rotated_feature_align(features, best_rbboxes, spatial_scale=spatial_scale, points=points)


def multi_scale_deformable_attn(
    value: Tensor,
    value_spatial_shapes: Tensor,
    value_level_start_index: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    im2col_step: int = 64,
) -> Tensor:
    """Like `MultiScaleDeformableAttnFunction.apply`."""
    del im2col_step
    return functional.ms_deform_attn(
        value, value_spatial_shapes, value_level_start_index, sampling_locations, attention_weights
    )


# ---- voxels ----------------------------------------------------------------------------------------


def dynamic_scatter(feats: Tensor, coors: Tensor, reduce_type: str = "max") -> tuple[Tensor, Tensor]:
    """(features [M, C] of voxels, their coors [M, 3]); negative coors of points [N, 3] mark points outside all
    voxels."""
    return functional.dynamic_scatter(feats, coors, reduce_type)[:2]


class Voxelization(nn.Module):
    """`voxelization` as a layer; max_voxels is a number, or a pair for training and testing."""

    def __init__(
        self,
        voxel_size: Sequence[float],
        point_cloud_range: Sequence[float],
        max_num_points: int,
        max_voxels: int | tuple[int, int] = 20000,
        deterministic: bool = True,
    ) -> None:
        super().__init__()
        self.voxel_size, self.point_cloud_range, self.max_num_points = voxel_size, point_cloud_range, max_num_points
        self.max_voxels = max_voxels if isinstance(max_voxels, tuple) else (max_voxels, max_voxels)
        self.deterministic = deterministic
        low, high = (torch.tensor(point_cloud_range[i : i + 3], dtype=torch.float32) for i in (0, 3))
        self.grid_size = ((high - low) / torch.tensor(voxel_size, dtype=torch.float32)).round().long()
        self.pcd_shape = [*self.grid_size[:2].tolist(), 1][::-1]

    def forward(self, input: Tensor) -> tuple[Tensor, Tensor, Tensor] | Tensor:
        max_boxes = self.max_voxels[0 if self.training else 1]
        return voxelization(input, self.voxel_size, self.point_cloud_range, self.max_num_points, max_boxes)


class DynamicScatter(nn.Module):
    """`dynamic_scatter` as a layer, of coors [N, 3], or [N, 4] with the batch index first."""

    def __init__(self, voxel_size: Sequence[float], point_cloud_range: Sequence[float], average_points: bool) -> None:
        super().__init__()
        self.voxel_size, self.point_cloud_range = voxel_size, point_cloud_range
        self.average_points = average_points

    def forward(self, points: Tensor, coors: Tensor) -> tuple[Tensor, Tensor]:
        return dynamic_scatter(points.contiguous(), coors.contiguous(), "mean" if self.average_points else "max")


# ---- boxes -----------------------------------------------------------------------------------------


def _arrays_too(function):
    """Wraps a function of boxes so that it accepts NumPy arrays and then returns arrays, as in MMCV."""

    @wraps(function)
    def wrapped(boxes, scores, *args, **given):
        if not isinstance(boxes, np.ndarray):
            return function(boxes, scores, *args, **given)
        results = function(torch.from_numpy(boxes), torch.from_numpy(np.asarray(scores)), *args, **given)
        return tuple(r.numpy() for r in results)

    return wrapped


def points_in_polygons(points: Tensor, polygons: Tensor) -> Tensor:
    """1.0 if a quadrilateral [M, 8] contains a point [N, 2], else 0.0 -> [N, M]."""
    return functional.points_in_polygons(points, polygons).float()


@_arrays_too
def nms(
    boxes: Tensor,
    scores: Tensor,
    iou_threshold: float,
    offset: int = 0,
    score_threshold: float = 0,
    max_num: int = -1,
) -> tuple[Tensor, Tensor]:
    """(kept boxes and scores [K, 5], indices [K]), by descending score. At max_boxes max_num, if positive.

    A positive score_threshold drops boxes with lower or equal scores.
    """
    among = torch.nonzero(scores > score_threshold).squeeze(1) if score_threshold > 0 else None
    some, their_scores = (boxes, scores) if among is None else (boxes[among], scores[among])
    kept = functional.nms(some.contiguous(), their_scores.contiguous(), iou_threshold, offset)
    if max_num > 0:
        kept = kept[:max_num]
    if among is not None:
        kept = among[kept]
    return torch.cat([boxes[kept], scores[kept, None]], 1), kept


@_arrays_too
def soft_nms(
    boxes: Tensor,
    scores: Tensor,
    iou_threshold: float = 0.3,
    sigma: float = 0.5,
    min_score: float = 1e-3,
    method: str = "linear",
    offset: int = 0,
) -> tuple[Tensor, Tensor]:
    """(boxes and reduced scores [K, 5], indices [K]); method "naive", "linear" or "gaussian"."""
    return functional.soft_nms(boxes, scores, iou_threshold, sigma, min_score, method, offset)


def nms_rotated(
    dets: Tensor, scores: Tensor, iou_threshold: float, labels: Tensor | None = None, clockwise: bool = True
) -> tuple[Tensor, Tensor | None]:
    """(boxes and scores [K, 6], indices [K]) for boxes [N, 5] (cx, cy, w, h, angle); (dets, None) without boxes.

    `labels` are ignored, as in MMCV's kernels: batched_nms separates classes. `clockwise` is the direction of angles.
    """
    del labels
    if dets.shape[0] == 0:
        return dets, None
    boxes = dets if clockwise else torch.cat([dets[:, :4], -dets[:, 4:5]], 1)
    kept = functional.nms_rotated(boxes.contiguous(), scores.contiguous(), iou_threshold)
    return torch.cat([dets[kept], scores[kept, None]], 1), kept


def _apart(boxes: Tensor, idxs: Tensor) -> Tensor:
    """Returns boxes [N, 4 or 5] that are shifted so that those of different idxs do not overlap."""
    if boxes.shape[-1] == 5:
        reach = boxes[:, 2:4].amax() * 2 + (boxes[:, :2].amax() - boxes[:, :2].amin())
        moved = torch.zeros_like(boxes)
        moved[:, :2] = (idxs.to(boxes) * (reach + 1))[:, None]
        return boxes + moved
    return boxes + (idxs.to(boxes) * (boxes.amax() - boxes.amin() + 1))[:, None]


_NMS = {"nms": nms, "soft_nms": soft_nms, "nms_rotated": nms_rotated}


def batched_nms(
    boxes: Tensor,
    scores: Tensor,
    idxs: Tensor,
    nms_cfg: Mapping[str, Any] | None,
    class_agnostic: bool = False,
) -> tuple[Tensor, Tensor]:
    """(kept boxes and scores [K, 5], indices [K]). Only boxes of equal `idxs` suppress each other.

    `nms_cfg` contains the function's name under "type" (default "nms") and its arguments. Its "class_agnostic"
    overrides the argument. From "split_thr" (10,000) boxes on, classes are processed separately. Fewer are moved apart
    in their own type, which rounds coordinates: MMCV's results are those of the rounded boxes. Without nms_cfg, boxes
    are only sorted.
    """
    if nms_cfg is None:
        scores, order = scores.sort(descending=True)
        return torch.cat([boxes[order], scores[:, None]], -1), order
    given = dict(nms_cfg)
    class_agnostic = given.pop("class_agnostic", class_agnostic)
    kind, split, max_boxes = given.pop("type", "nms"), given.pop("split_thr", 10000), given.pop("max_num", -1)
    if kind not in _NMS:
        raise ValueError(f"nms_cfg: expected type {', '.join(_NMS)}, got '{kind}'")
    suppress = _NMS[kind]
    if boxes.shape[0] == 0:
        return torch.cat([boxes, scores[:, None]], -1), idxs.new_zeros(0, dtype=torch.int64)

    if class_agnostic or boxes.shape[0] < split or torch.onnx.is_in_onnx_export():
        dets, kept = suppress(boxes if class_agnostic else _apart(boxes, idxs), scores, **given)
        new_scores = dets[:, -1]
    else:
        parts = []
        for label in torch.unique(idxs):
            members = torch.nonzero(idxs == label).squeeze(1)
            dets, in_class = suppress(boxes[members], scores[members], **given)
            parts.append((members[in_class], dets[:, -1]))
        kept, new_scores = (torch.cat(column) for column in zip(*parts, strict=True))
        new_scores, order = new_scores.sort(descending=True)
        kept = kept[order]
    if max_boxes > 0:
        kept, new_scores = kept[:max_boxes], new_scores[:max_boxes]
    return torch.cat([boxes[kept], new_scores[:, None]], -1), kept


def nms_match(dets: Tensor | np.ndarray, iou_threshold: float) -> list[Any]:
    """Like `functional.nms_match`; also accepts an array, and then returns arrays."""
    if isinstance(dets, np.ndarray):
        return [group.numpy() for group in functional.nms_match(torch.from_numpy(dets), iou_threshold)]
    return functional.nms_match(dets, iou_threshold)


# ---- MMCV 2 ----------------------------------------------------------------------------------------

mmcv_ext.install()

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m polyop.compat.mmcv SCRIPT [ARGUMENT ...]")
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
