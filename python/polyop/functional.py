"""The operators as typed functions of tensors, under their names in torchvision, MMCV and torch.

All call torch.ops.polyop.*, which support torch.compile by fake kernels. Both of torch.onnx.export's exporters write
them as ONNX nodes. Operators on features have gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from typing import Any

import torch
from torch import Tensor

from polyop._torch import load  # noqa: F401 - registers the operators
from polyop._torch.node_domain import node_domain

__all__ = [
    "active_rotated_filter",
    "assign_score_withk",
    "ball_query",
    "bev_pool",
    "bev_pool_v2",
    "bezier_align",
    "border_align",
    "box_iou_quadri",
    "box_iou_rotated",
    "boxes_iou3d",
    "boxes_overlap_bev",
    "carafe",
    "causal_conv1d",
    "chamfer_distance",
    "contour_expand",
    "convex_giou",
    "convex_iou",
    "corner_pool",
    "correlation",
    "correlation_lookup",
    "cummax",
    "cummin",
    "dcn_v3",
    "dcn_v4",
    "deform_conv2d",
    "deform_roi_pool",
    "diff_iou_rotated_2d",
    "diff_iou_rotated_3d",
    "dynamic_scatter",
    "flash_deform_attn",
    "furthest_point_sample",
    "furthest_point_sample_with_dist",
    "gather_points",
    "get_indice_pairs",
    "get_indice_pairs_implicit_gemm",
    "grid_sample",
    "grouping_operation",
    "implicit_gemm",
    "indice_conv",
    "knn",
    "knn_query",
    "masked_conv2d",
    "min_area_polygons",
    "modulated_deform_conv2d",
    "ms_deform_attn",
    "ms_deform_attn_of_offsets",
    "neighborhood_attention",
    "nms",
    "nms3d",
    "nms3d_normal",
    "nms_match",
    "nms_quadri",
    "nms_rotated",
    "node_domain",
    "pillar_scatter",
    "pixel_group",
    "points_in_boxes_all",
    "points_in_boxes_part",
    "points_in_polygons",
    "prroi_pool",
    "psa_mask",
    "riroi_align_rotated",
    "roi_align",
    "roi_align_rotated",
    "roi_pool",
    "roiaware_pool3d",
    "roipoint_pool3d",
    "rotate",
    "segment_csr",
    "selective_scan",
    "soft_nms",
    "three_interpolate",
    "three_nn",
    "voxel_grid",
    "voxelization",
]

_ops = torch.ops.polyop


def _pair(value: int | Sequence[int]) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)


# ---- features --------------------------------------------------------------------------------------


def roi_align(
    input: Tensor,
    boxes: Tensor,
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
    mode: str = "avg",
) -> Tensor:
    """`torchvision.ops.roi_align`: input [N, C, H, W], boxes [R, 5] (image, x1, y1, x2, y2) -> [R, C, h, w]."""
    height, width = _pair(output_size)
    return _ops.roi_align(
        input, boxes, output_height=height, output_width=width, spatial_scale=spatial_scale,
        sampling_ratio=sampling_ratio, aligned=int(aligned), mode=mode,
    )  # fmt: skip


def roi_align_rotated(
    input: Tensor,
    rois: Tensor,
    output_size: int | Sequence[int],
    spatial_scale: float,
    sampling_ratio: int = 0,
    aligned: bool = True,
    clockwise: bool = False,
) -> Tensor:
    """`mmcv.ops.roi_align_rotated`: rois [R, 6] (image, cx, cy, w, h, angle) -> [R, C, h, w]."""
    height, width = _pair(output_size)
    return _ops.roi_align_rotated(
        input, rois, output_height=height, output_width=width, spatial_scale=spatial_scale,
        sampling_ratio=sampling_ratio, aligned=int(aligned), clockwise=int(clockwise),
    )  # fmt: skip


def riroi_align_rotated(
    features: Tensor,
    rois: Tensor,
    out_size: int | Sequence[int],
    spatial_scale: float,
    num_samples: int = 0,
    num_orientations: int = 8,
    clockwise: bool = False,
) -> Tensor:
    """`mmcv.ops.riroi_align_rotated`: like roi_align_rotated, with orientation channels that rotate with the box."""
    height, width = _pair(out_size)
    return _ops.riroi_align_rotated(
        features, rois, pooled_height=height, pooled_width=width, spatial_scale=spatial_scale, num_samples=num_samples,
        num_orientations=num_orientations, clockwise=int(clockwise),
    )  # fmt: skip


def bezier_align(
    input: Tensor,
    beziers: Tensor,
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    aligned: bool = True,
) -> Tensor:
    """`mmcv.ops.bezier_align`: beziers [R, 17] (image, 8 points of two curves, clockwise) -> [R, C, h, w]."""
    height, width = _pair(output_size)
    return _ops.bezier_align(
        input, beziers, output_height=height, output_width=width, spatial_scale=spatial_scale,
        sampling_ratio=sampling_ratio, aligned=int(aligned),
    )  # fmt: skip


def active_rotated_filter(input: Tensor, indices: Tensor) -> Tensor:
    """`mmcv.ops.active_rotated_filter`: filters [O, P, A, h, w], 1-based indices [A, h, w, R] -> [O * R, P * A, h,
    w]."""
    return _ops.active_rotated_filter(input, indices)


def selective_scan(
    u: Tensor,
    delta: Tensor,
    A: Tensor,  # noqa: N803
    B: Tensor,  # noqa: N803
    C: Tensor,  # noqa: N803
    D: Tensor | None = None,  # noqa: N803
    z: Tensor | None = None,
    delta_bias: Tensor | None = None,
    initial_state: Tensor | None = None,
    delta_softplus: bool = False,
) -> tuple[Tensor, Tensor]:
    """Mamba's scan: u, delta and z [N, dim, L], A [dim, S], B and C [N, groups, S, L] -> the output [N, dim, L] and the
    last state [N, dim, S]."""
    return _ops.selective_scan(u, delta, A, B, C, D, z, delta_bias, initial_state, delta_softplus=int(delta_softplus))


def causal_conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    initial_state: Tensor | None = None,
    activation: str = "none",
) -> tuple[Tensor, Tensor]:
    """Depthwise convolution of x [N, dim, L] by weight [dim, W] -> the output and the final state [N, dim, W - 1].

    `activation` is "none" or "silu".
    """
    return _ops.causal_conv1d(x, weight, bias, initial_state, activation=activation)


def neighborhood_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    is_causal: bool | Sequence[bool] = False,
    scale: float | None = None,
) -> Tensor:
    """`natten.functional.na1d`, `na2d`, `na3d`: tensors [N, …, heads, depth], one to three axes -> [N, …, heads, V].

    A single kernel size, dilation or flag applies to all axes.
    """
    kernels, dilations, causal = (
        [int(v) for v in (values if isinstance(values, Sequence) else (values,))]
        for values in (kernel_size, dilation, is_causal)
    )
    return _ops.neighborhood_attention(
        query, key, value, kernel_size=kernels, dilation=dilations, is_causal=causal,
        scale=0.0 if scale is None else scale,
    )  # fmt: skip


def correlation(
    input1: Tensor,
    input2: Tensor,
    kernel_size: int | Sequence[int] = 1,
    max_displacement: int = 1,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    dilation_patch: int | Sequence[int] = 1,
) -> Tensor:
    """`mmcv.ops.Correlation`: two tensors [N, C, H, W] -> [N, P, P, oh, ow], P = 2 * max_displacement + 1."""
    return _ops.correlation(
        input1, input2, kernel_size=_pair(kernel_size), max_displacement=max_displacement, stride=_pair(stride),
        padding=_pair(padding), dilation=_pair(dilation), dilation_patch=_pair(dilation_patch),
    )  # fmt: skip


def correlation_lookup(volume: Tensor, coords: Tensor, radius: int | Sequence[int] = 4) -> Tensor:
    """RAFT's lookup: a volume [N, H, W, rows, columns] and positions (x, y) [N, 2, H, W] -> samples [N, K, H, W].

    K = (2 * radius[0] + 1) * (2 * radius[1] + 1) for a radius of rows and columns; rows vary fastest.
    """
    return _ops.correlation_lookup(volume, coords, radius=_pair(radius))


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool = False
) -> Tensor:
    """`torch.nn.functional.grid_sample`, for images and volumes."""
    return _ops.grid_sampler(
        input, grid, interpolation_mode=mode, padding_mode=padding_mode, align_corners=int(align_corners)
    )


def deform_conv2d(
    input: Tensor,
    offset: Tensor,
    weight: Tensor,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    deform_groups: int = 1,
) -> Tensor:
    """`mmcv.ops.deform_conv2d` (v1): offset [N, 2 * deform_groups * kh * kw, oh, ow], y before x."""
    return _ops.deform_conv2d(
        input, offset, weight, stride=_pair(stride), padding=_pair(padding), dilation=_pair(dilation), groups=groups,
        deform_groups=deform_groups,
    )  # fmt: skip


def modulated_deform_conv2d(
    input: Tensor,
    offset: Tensor,
    mask: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    deform_groups: int = 1,
) -> Tensor:
    """`mmcv.ops.modulated_deform_conv2d` (v2), like `torchvision.ops.deform_conv2d` with a mask."""
    return _ops.modulated_deform_conv2d(
        input, offset, mask, weight, bias, stride=_pair(stride), padding=_pair(padding), dilation=_pair(dilation),
        groups=groups, deform_groups=deform_groups,
    )  # fmt: skip


def _window(
    kernel_size: int | Sequence[int], stride: int | Sequence[int], padding: int | Sequence[int],
    dilation: int | Sequence[int],
) -> dict[str, int]:  # fmt: skip
    """Returns an attribute per axis, height before width."""
    named = {"kernel": kernel_size, "stride": stride, "pad": padding, "dilation": dilation}
    return {f"{name}_{axis}": v for name, value in named.items() for axis, v in zip("hw", _pair(value), strict=True)}


def dcn_v3(
    input: Tensor,
    offset: Tensor,
    mask: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    group: int,
    group_channels: int,
    offset_scale: float = 1.0,
    remove_center: bool = False,
) -> Tensor:
    """InternImage's `DCNv3Function`: input [N, H, W, G * D], offset [N, oh, ow, G * P * 2], mask [N, oh, ow, G * P].

    A window has P points in column-major order. Offsets are (x, y), and sizes are (height, width).
    """
    return _ops.dcn_v3(
        input, offset, mask, **_window(kernel_size, stride, padding, dilation), group=group,
        group_channels=group_channels, offset_scale=offset_scale, remove_center=int(remove_center),
    )  # fmt: skip


def dcn_v4(
    input: Tensor,
    offset_mask: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    group: int,
    group_channels: int,
    offset_scale: float = 1.0,
    remove_center: bool = False,
) -> Tensor:
    """`DCNv4Function`: like dcn_v3, with a pixel's offsets and masks in one row, group by group, padded to 8."""
    return _ops.dcn_v4(
        input, offset_mask, **_window(kernel_size, stride, padding, dilation), group=group,
        group_channels=group_channels, offset_scale=offset_scale, remove_center=int(remove_center),
    )  # fmt: skip


def contour_expand(kernel_mask: Tensor, internal_kernel_label: Tensor, min_kernel_area: int) -> Tensor:
    """`mmcv.ops.contour_expand` (PSENet): expands the labels [H, W] of the smallest kernels over the masks [K, H, W],
    from the last but one to the first -> int32 [H, W]."""
    return _ops.contour_expand(kernel_mask, internal_kernel_label, min_kernel_area=min_kernel_area)


def pixel_group(
    score: Tensor,
    mask: Tensor,
    embedding: Tensor,
    kernel_label: Tensor,
    kernel_contour: Tensor,
    kernel_region_num: int,
    distance_threshold: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """`mmcv.ops.pixel_group` (PAN): expands kernels over the pixels of the mask [H, W] whose embedding [H, W, D] is
    close to theirs -> (labels [H, W], mean score of each label [kernel_region_num], number of pixels of each label).
    """
    return _ops.pixel_group(
        score, mask, embedding, kernel_label, kernel_contour, kernel_region_num=kernel_region_num,
        distance_threshold=distance_threshold,
    )  # fmt: skip


def carafe(features: Tensor, masks: Tensor, kernel_size: int, group_size: int, scale_factor: int) -> Tensor:
    """`mmcv.ops.carafe`: features [N, C, H, W], masks [N, k * k * group_size, s * H, s * W] -> [N, C, s * H, s * W]."""
    return _ops.carafe(features, masks, kernel_size=kernel_size, group_size=group_size, scale_factor=scale_factor)


def border_align(input: Tensor, boxes: Tensor, pool_size: int) -> Tensor:
    """`mmcv.ops.border_align`: input [N, 4 * C, H, W], boxes [N, K, 4] -> [N, C, K, 4]: top, left, bottom, right."""
    return _ops.border_align(input, boxes, pool_size=pool_size)


def deform_roi_pool(
    input: Tensor,
    rois: Tensor,
    offset: Tensor | None,
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    gamma: float = 0.1,
) -> Tensor:
    """`mmcv.ops.deform_roi_pool`: rois [R, 5], offset [R, 2, h, w] (x before y) or None -> [R, C, h, w]."""
    height, width = _pair(output_size)
    return _ops.deform_roi_pool(
        input, rois, offset, pooled_height=height, pooled_width=width, spatial_scale=spatial_scale,
        sampling_ratio=sampling_ratio, gamma=gamma,
    )  # fmt: skip


def prroi_pool(features: Tensor, rois: Tensor, output_size: int | Sequence[int], spatial_scale: float = 1.0) -> Tensor:
    """`mmcv.ops.prroi_pool`: features [N, C, H, W], rois [R, 5] -> [R, C, h, w]. Also differentiable in the boxes."""
    height, width = _pair(output_size)
    return _ops.prroi_pool(features, rois, pooled_height=height, pooled_width=width, spatial_scale=spatial_scale)


def roi_pool(
    input: Tensor,
    boxes: Tensor,
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    rounded: bool = True,
) -> Tensor:
    """`torchvision.ops.roi_pool`: input [N, C, H, W], boxes [R, 5] -> [R, C, h, w]; with rounded=False
    `mmcv.ops.roi_pool`."""
    height, width = _pair(output_size)
    return _ops.roi_pool(
        input, boxes, output_height=height, output_width=width, spatial_scale=spatial_scale, rounded=int(rounded)
    )[0]


def psa_mask(input: Tensor, psa_type: str, mask_size: int | Sequence[int]) -> Tensor:
    """`mmcv.ops.PSAMask`: masks [N, mh * mw, H, W] -> [N, H * W, H, W]; psa_type "collect" or "distribute"."""
    return _ops.psa_mask(input, psa_type=psa_type, mask_size=_pair(mask_size))


def masked_conv2d(
    features: Tensor,
    mask: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """`mmcv.ops.masked_conv2d`: convolution of features [1, C, H, W] where mask [1, H, W] is positive, else 0."""
    return _ops.masked_conv2d(features, mask, weight, bias, padding=_pair(padding), stride=_pair(stride))


def corner_pool(x: Tensor, mode: str) -> Tensor:
    """`mmcv.ops.CornerPool`: the maximum from each pixel to the "top", "bottom", "left" or "right" edge."""
    return _ops.corner_pool(x, mode=mode)


def ms_deform_attn(
    value: Tensor,
    value_spatial_shapes: Tensor,
    value_level_start_index: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
) -> Tensor:
    """Multi-scale deformable attention: value [N, S, M, D], locations [N, Q, M, L, P, 2] -> [N, Q, M * D]."""
    return _ops.ms_deform_attn(
        value, value_spatial_shapes, value_level_start_index, sampling_locations, attention_weights
    )


def flash_deform_attn(
    value: Tensor, spatial_shapes: Tensor, level_start_index: Tensor, loc_attn: Tensor, points: int
) -> Tensor:
    """DCNv4's `FlashDeformAttnFunction`: value [N, S, G, D], loc_attn [N, Q, G, L * points * 3] -> [N, Q, G * D].

    loc_attn contains the locations of a head, followed by its logits.
    """
    return _ops.flash_deform_attn(value, spatial_shapes, level_start_index, loc_attn, points=points)


def ms_deform_attn_of_offsets(
    value: Tensor,
    value_spatial_shapes: Tensor,
    reference_points: Tensor,
    sampling_offsets: Tensor,
    attention_weights: Tensor,
) -> Tensor:
    """Deformable attention as in BEVFormer: points [B, Q, 1, G * 2], offsets in pixels [B, Q, M, L * P * 2], logits
    [B, Q, M, L * P] -> [B, Q, M, D]."""
    return _ops.ms_deform_attn_of_offsets(
        value, value_spatial_shapes, reference_points, sampling_offsets, attention_weights
    )


def rotate(img: Tensor, angle: Tensor, center: Tensor, interpolation: str = "bilinear") -> Tensor:
    """`torchvision.transforms.functional.rotate` of img [C, H, W], by tensors: degrees [] and the centre (x, y) [2]."""
    return _ops.rotate(img, angle, center, interpolation=interpolation)


def cummax(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """`torch.cummax`."""
    return _ops.cummax(input, dim=dim, mode="max")


def cummin(input: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """`torch.cummin`."""
    return _ops.cummax(input, dim=dim, mode="min")


# ---- bird's eye view -------------------------------------------------------------------------------


def bev_pool_v2(
    depth: Tensor,
    feat: Tensor,
    ranks_depth: Tensor,
    ranks_feat: Tensor,
    ranks_bev: Tensor,
    interval_starts: Tensor,
    interval_lengths: Tensor,
    out_height: int,
    out_width: int,
    output_z: int = 1,
) -> Tensor:
    """BEVDet's pooling: features [N, H, W, C] weighted by depth [N, D, H, W], summed by intervals -> [1, oh, ow, C].

    For several layers, ranks_bev contains the cells (z * oh + y) * ow + x -> [1, output_z, oh, ow, C].
    """
    tensors = (depth, feat, ranks_depth, ranks_feat, ranks_bev, interval_starts, interval_lengths)
    if output_z == 1:
        return _ops.bev_pool(*tensors, out_height=out_height, out_width=out_width)
    return _ops.bev_pool_volume(*tensors, out_height=out_height, out_width=out_width, output_z=output_z)


def bev_pool(
    x: Tensor, geom_feats: Tensor, interval_lengths: Tensor, interval_starts: Tensor, b: int, d: int, h: int, w: int
) -> Tensor:
    """BEVFusion's pooling: features [P, C] of points at (row, column, layer, image), by intervals -> [b, d, h, w,
    C]."""
    return _ops.quick_cumsum(
        x, geom_feats, interval_lengths, interval_starts, batch_size=b, dimension=d, height=h, width=w
    )


def pillar_scatter(features: Tensor, coors: Tensor, output_shape: int | Sequence[int], batch_size: int = 1) -> Tensor:
    """PointPillarsScatter: features [P, C] of pillars at (image, z, y, x) -> [batch_size, C, H, W]."""
    return _ops.pillar_scatter(features, coors, None, dense_shape=_pair(output_shape), batch_size=batch_size)


# ---- boxes -----------------------------------------------------------------------------------------


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float, offset: int = 0) -> Tensor:
    """`torchvision.ops.nms`: the indices of the kept boxes among [N, 4], by descending score."""
    return _ops.nms(boxes, scores, iou_threshold=iou_threshold, offset=offset)


def soft_nms(
    boxes: Tensor,
    scores: Tensor,
    iou_threshold: float = 0.3,
    sigma: float = 0.5,
    min_score: float = 1e-3,
    method: str = "linear",
    offset: int = 0,
) -> tuple[Tensor, Tensor]:
    """`mmcv.ops.soft_nms`: (boxes and reduced scores [K, 5], indices [K]); method "naive", "linear" or "gaussian"."""
    return _ops.soft_nms(
        boxes, scores, iou_threshold=iou_threshold, sigma=sigma, min_score=min_score, method=method, offset=offset
    )


def nms_match(dets: Tensor, iou_threshold: float) -> list[Tensor]:
    """`mmcv.ops.nms_match`: groups of indices of `dets` [N, 5] (box, score). Each group is a kept box, followed by the
    boxes that it suppresses; groups are sorted by descending score."""
    if dets.shape[0] == 0:
        return []
    scores = dets[:, 4]
    pairs = _ops.nms_match(
        dets[None, :, :4].float().contiguous(), scores[None, None].float().contiguous(),
        torch.tensor(float(iou_threshold), device=dets.device), torch.tensor(-torch.inf, device=dets.device),
    )[:, 2:]  # fmt: skip
    suppressed = set(pairs[:, 1].tolist())
    groups = {i: [i] for i in scores.argsort(descending=True, stable=True).tolist() if i not in suppressed}
    for keeper, other in pairs.tolist():
        groups[keeper].append(other)
    return [torch.tensor(group, device=dets.device) for group in groups.values()]


def nms_quadri(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The indices of the kept boxes among [N, 8] (x1, y1, ..., x4, y4), by descending score."""
    return _ops.nms_quadri(boxes, scores, iou_threshold=iou_threshold)


def nms_rotated(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The indices of the kept boxes among [N, 5] (cx, cy, w, h, angle in radians), by descending score."""
    return _ops.nms_rotated(boxes, scores, iou_threshold=iou_threshold)


def nms3d(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """`mmcv.ops.nms3d`: the indices of the kept boxes among [N, 7] (x, y, z, dx, dy, dz, heading), by descending
    score."""
    return _ops.nms3d(boxes, scores, iou_threshold=iou_threshold)


def nms3d_normal(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """`mmcv.ops.nms3d_normal`: `nms3d` that ignores the headings."""
    return _ops.nms3d(boxes, scores, iou_threshold=iou_threshold, normal=1)


def box_iou_rotated(
    boxes_a: Tensor, boxes_b: Tensor, mode: str = "iou", aligned: bool = False, clockwise: bool = True
) -> Tensor:
    """`mmcv.ops.box_iou_rotated`: boxes (cx, cy, w, h, angle) [M, 5] and [N, 5] -> [M, N]; if aligned, of pairs -> [N].

    Mode "iou" divides by the area of the union, "iof" by that of the first box. Angles are clockwise, or else
    counterclockwise.
    """
    if not clockwise:
        boxes_a, boxes_b = (torch.cat([boxes[:, :4], -boxes[:, 4:]], 1) for boxes in (boxes_a, boxes_b))
    if not aligned:
        return _ops.box_iou_rotated(boxes_a, boxes_b, mode=mode)
    return _ops.box_iou_rotated(boxes_a[:, None], boxes_b[:, None], mode=mode).flatten()


def diff_iou_rotated_2d(box1: Tensor, box2: Tensor) -> Tensor:
    """`mmcv.ops.diff_iou_rotated_2d`: boxes (x, y, w, h, alpha) [B, N, 5] -> IoU of pairs [B, N], with gradients."""
    return _ops.diff_iou_rotated(box1, box2, dimensions=2)


def diff_iou_rotated_3d(box3d1: Tensor, box3d2: Tensor) -> Tensor:
    """`mmcv.ops.diff_iou_rotated_3d`: (x, y, z, w, h, l, alpha) [B, N, 7] -> IoU of pairs [B, N], with gradients."""
    return _ops.diff_iou_rotated(box3d1, box3d2, dimensions=3)


def box_iou_quadri(boxes_a: Tensor, boxes_b: Tensor, mode: str = "iou", aligned: bool = False) -> Tensor:
    """`mmcv.ops.box_iou_quadri`: (x1, y1, ..., x4, y4) [M, 8] and [N, 8] -> [M, N]; if aligned, of pairs -> [N]."""
    if not aligned:
        return _ops.box_iou_quadri(boxes_a, boxes_b, mode=mode)
    return _ops.box_iou_quadri(boxes_a[:, None], boxes_b[:, None], mode=mode).flatten()


def convex_iou(pointsets: Tensor, polygons: Tensor) -> Tensor:
    """`mmcv.ops.convex_iou`: IoU of the hulls of sets of nine points [N, 18] and quadrilaterals [K, 8] -> [N, K]."""
    return _ops.convex_iou(pointsets, polygons)


def convex_giou(pointsets: Tensor, polygons: Tensor) -> tuple[Tensor, Tensor]:
    """`mmcv.ops.convex_giou`: GIoU [N] of pairs of the hull of nine points [N, 18] and a quadrilateral [N, 8], and its
    gradient with respect to the points [N, 18].
    """
    result = _ops.convex_giou(pointsets, polygons)
    return result[:, 18], result[:, :18]


def min_area_polygons(pointsets: Tensor) -> Tensor:
    """`mmcv.ops.min_area_polygons`: the corners [N, 8] of the smallest rectangle around each set of nine points [N,
    18]."""
    return _ops.min_area_polygons(pointsets)


def points_in_polygons(points: Tensor, polygons: Tensor) -> Tensor:
    """1 if a polygon (x1, y1, x2, y2, ...) of [M, 2 * corners] contains a point [N, 2], else 0 -> int32 [N, M]."""
    return _ops.points_in_polygons(points, polygons)


def boxes_iou3d(boxes_a: Tensor, boxes_b: Tensor) -> Tensor:
    """`mmcv.ops.boxes_iou3d`: the 3-D IoU of boxes [M, 7] and [N, 7], where z is the centre -> [M, N]."""
    return _ops.boxes_iou3d(boxes_a, boxes_b)


def boxes_overlap_bev(boxes_a: Tensor, boxes_b: Tensor) -> Tensor:
    """`mmcv.ops.boxes_overlap_bev`: the overlap of boxes [M, 7] and [N, 7] in bird's-eye view -> [M, N]."""
    return _ops.boxes_iou3d(boxes_a, boxes_b, mode="overlap_bev")


# ---- point clouds ----------------------------------------------------------------------------------


def knn_query(
    nsample: int | Tensor,
    xyz: Tensor,
    offset: Tensor,
    new_xyz: Tensor | None = None,
    new_offset: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The nsample nearest points of the same segment: (indices [m, nsample], distances); -1 for missing ones.

    `offset` contains the ends of the segments of `xyz` [n, 3]. Without `new_xyz`, the queries are the points
    themselves.
    """
    count = nsample if isinstance(nsample, Tensor) else torch.tensor(nsample)
    return _ops.knn_query(count, xyz, offset, new_xyz, new_offset)


def voxel_grid(pos: Tensor, size: Tensor, start: Tensor | None = None, end: Tensor | None = None) -> Tensor:
    """`torch_cluster.grid_cluster`: the index of each point's voxel; pos [N, D], size [D] -> [N]."""
    return _ops.voxel_grid(pos, size, start, end)


def voxelization(
    points: Tensor,
    voxel_size: Sequence[float],
    coors_range: Sequence[float],
    max_points: int = 35,
    max_voxels: int = 20000,
    deterministic: bool = True,
) -> tuple[Tensor, Tensor, Tensor] | Tensor:
    """`mmcv.ops.voxelization`: points [N, F] -> (voxels [V, max_points, F], coors [V, 3] as z, y, x, num_points [V]).

    If max_points or max_voxels is -1, returns only the voxel of each point, coors [N, 3].
    """
    del deterministic  # the operator is always deterministic
    grid = {"voxel_size": list(voxel_size), "point_cloud_range": list(coors_range)}
    if max_points == -1 or max_voxels == -1:
        return _ops.dynamic_voxelize(points, **grid)
    voxels, coors, num_points, _ = _ops.hard_voxelize(points, **grid, max_num_points=max_points, max_voxels=max_voxels)
    return voxels, coors, num_points


def dynamic_scatter(feats: Tensor, coors: Tensor, reduce_type: str = "max") -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`mmcv.ops.dynamic_scatter` with all results: reduces features [N, C] by the voxels in coors [N, 3] -> ([M, C],
    the voxels' coors [M, 3], each point's voxel [N], number of points of each voxel [M]).
    """
    return _ops.dynamic_scatter(feats, coors, reduce_type=reduce_type)


def segment_csr(src: Tensor, indptr: Tensor, reduce: str = "sum") -> Tensor:
    """`torch_scatter.segment_csr`: reduces the rows [indptr[m], indptr[m + 1]) of src [E, F] for each m -> [M, F]."""
    return _ops.segment_csr(src, indptr, reduce=reduce)


def knn(k: int, xyz: Tensor, center_xyz: Tensor | None = None, transposed: bool = False) -> Tensor:
    """`mmcv.ops.knn`: the k points [B, N, 3] nearest to each centre [B, M, 3], or to each point -> [B, k, M].

    With `transposed` the tensors are [B, 3, N] and [B, 3, M].
    """
    return _ops.knn(xyz, center_xyz, k=k, transposed=int(transposed))


def three_nn(target: Tensor, source: Tensor) -> tuple[Tensor, Tensor]:
    """`mmcv.ops.three_nn`: distances [B, N, 3] and indices of the points [B, M, 3] nearest to the targets [B, N, 3]."""
    return _ops.three_nn(target, source)


def chamfer_distance(xyz1: Tensor, xyz2: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`mmcv.ops.chamfer_distance`: squared distances of points [B, N, D] to the nearest points of [B, M, D], and vice
    versa -> (dist1 [B, N], dist2 [B, M], indices of the nearest points idx1 [B, N], idx2 [B, M]); D is 2 or 3.
    """
    return _ops.chamfer_distance(xyz1, xyz2)


def assign_score_withk(
    scores: Tensor, point_features: Tensor, center_features: Tensor, knn_idx: Tensor, aggregate: str = "sum"
) -> Tensor:
    """`mmcv.ops.assign_score_withk` (PAConv): scores [B, P, K, M], two features [B, N, M, O] -> [B, O, P, K]."""
    if aggregate != "sum":  # MMCV computes the sum for other values, too
        raise ValueError(f"aggregate: expected 'sum', got '{aggregate}'")
    return _ops.assign_score_withk(scores, point_features, center_features, knn_idx)


def three_interpolate(features: Tensor, indices: Tensor, weight: Tensor) -> Tensor:
    """`mmcv.ops.three_interpolate`: weighted sums of three columns of features [B, C, M] per point -> [B, C, N]."""
    return _ops.three_interpolate(features, indices, weight)


def grouping_operation(features: Tensor, indices: Tensor) -> Tensor:
    """`mmcv.ops.grouping_operation`: the columns of features [B, C, N] at indices [B, M, K] -> [B, C, M, K]."""
    return _ops.group_points(features, indices)


def gather_points(features: Tensor, indices: Tensor) -> Tensor:
    """`mmcv.ops.gather_points`: the columns of features [B, C, N] at indices [B, M] -> [B, C, M]."""
    return _ops.gather_points(features, indices)


def furthest_point_sample(points_xyz: Tensor, num_points: int) -> Tensor:
    """`mmcv.ops.furthest_point_sample`: indices [B, num_points] of points [B, N, 3] that are far from each other."""
    return _ops.furthest_point_sampling(points_xyz, num_points=num_points)


def furthest_point_sample_with_dist(points_dist: Tensor, num_points: int) -> Tensor:
    """`mmcv.ops.furthest_point_sample_with_dist`: like `furthest_point_sample`, from pairwise distances [B, N, N]."""
    return _ops.furthest_point_sampling_with_dist(points_dist, num_points=num_points)


def ball_query(
    min_radius: float,
    max_radius: float,
    sample_num: int,
    xyz: Tensor,
    center_xyz: Tensor,
    xyz_batch_cnt: Tensor | None = None,
    center_xyz_batch_cnt: Tensor | None = None,
) -> Tensor:
    """`mmcv.ops.ball_query`: the first points [B, N, 3] within a distance of each centre [B, M, 3] -> [B, M,
    sample_num].

    With counts, clouds of different sizes are concatenated: [N, 3], [M, 3] -> [M, sample_num].
    """
    radii = {"min_radius": min_radius, "max_radius": max_radius, "sample_num": sample_num}
    if (xyz_batch_cnt is None) != (center_xyz_batch_cnt is None):
        raise ValueError("ball_query: expected both xyz_batch_cnt and center_xyz_batch_cnt, or neither, got one")
    if xyz_batch_cnt is None:
        return _ops.ball_query(xyz, center_xyz, **radii)
    return _ops.stacked_ball_query(xyz, xyz_batch_cnt, center_xyz, center_xyz_batch_cnt, **radii)


def points_in_boxes_part(points: Tensor, boxes: Tensor) -> Tensor:
    """`mmcv.ops.points_in_boxes_part`: the index of the first box [B, K, 7] that contains each point [B, M, 3], or
    -1."""
    return _ops.points_in_boxes_part(points, boxes)


def points_in_boxes_all(points: Tensor, boxes: Tensor) -> Tensor:
    """`mmcv.ops.points_in_boxes_all`: 1 if a box [B, K, 7] contains a point [B, M, 3], else 0 -> [B, M, K]."""
    return _ops.points_in_boxes_all(points, boxes)


def roipoint_pool3d(
    points: Tensor, features: Tensor, boxes: Tensor, num_sampled_points: int = 512
) -> tuple[Tensor, Tensor]:
    """`mmcv.ops.RoIPointPool3d`: coordinates and features of the first points [B, N, 3] in each box [B, M, 7].

    features [B, N, C] -> ([B, M, num_sampled_points, 3 + C], 1 for boxes without points [B, M]).
    """
    return _ops.roipoint_pool3d(points, features, boxes, num_sampled_points=num_sampled_points)


def roiaware_pool3d(
    rois: Tensor,
    points: Tensor,
    features: Tensor,
    out_size: int | Sequence[int],
    max_pts_per_voxel: int = 128,
    mode: str = "max",
) -> Tensor:
    """`mmcv.ops.RoIAwarePool3d`: pools features [N, C] of points [N, 3] over the cells of boxes [R, 7] -> [R, x, y, z,
    C].

    A cell uses its first max_pts_per_voxel - 1 points; mode "max" or "avg".
    """
    cells = [out_size] * 3 if isinstance(out_size, int) else list(out_size)
    return _ops.roiaware_pool3d(
        rois, points, features, out_size=cells, max_pts_per_voxel=max_pts_per_voxel, mode=mode
    )  # fmt: skip


# ---- sparse convolution: polyop.sparse has layers ----------------------------------------------------


def get_indice_pairs_implicit_gemm(
    indices: Tensor,
    batch_size: int,
    spatial_shape: Sequence[int],
    ksize: Sequence[int],
    stride: Sequence[int] = (1, 1, 1),
    padding: Sequence[int] = (0, 0, 0),
    dilation: Sequence[int] = (1, 1, 1),
    out_padding: Sequence[int] = (0, 0, 0),
    subm: bool = False,
    transpose: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The outputs of a convolution of voxels [N, 4] (batch, z, y, x), and the input rows of each output.

    (out_indices [O, 4], pair_fwd [offsets, O], pair_mask [O, words], mask_argsort [O], num_act_out []).
    """
    return _ops.get_indice_pairs_implicit_gemm(
        indices, batch_size=batch_size, spatial_shape=list(spatial_shape), ksize=list(ksize), stride=list(stride),
        padding=list(padding), dilation=list(dilation), out_padding=list(out_padding), subm=int(subm),
        transpose=int(transpose),
    )  # fmt: skip


def implicit_gemm(
    features: Tensor,
    filters: Tensor,
    pair_fwd: Tensor,
    pair_mask: Tensor,
    mask_argsort: Tensor,
    bias: Tensor | None = None,
    is_subm: bool = False,
    act_type: str = "none",
    act_alpha: float = 0.0,
) -> Tensor:
    """features [N, C], filters [K, kz, ky, kx, C], the table of `get_indice_pairs_implicit_gemm` -> [O, K].

    act_type: "none", "relu", "sigmoid" or "leaky_relu" with negative slope act_alpha.
    """
    return _ops.implicit_gemm(
        features, filters, pair_fwd, pair_mask, mask_argsort, bias, is_subm=int(is_subm), act_type=act_type,
        act_alpha=act_alpha,
    )  # fmt: skip


def get_indice_pairs(
    indices: Tensor,
    batch_size: int,
    spatial_shape: Sequence[int],
    ksize: Sequence[int],
    stride: Sequence[int] = (1, 1, 1),
    padding: Sequence[int] = (0, 0, 0),
    dilation: Sequence[int] = (1, 1, 1),
    out_padding: Sequence[int] = (0, 0, 0),
    subm: bool = False,
    transpose: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Like `get_indice_pairs_implicit_gemm`, as lists: (out_indices [O, 4], indice_pairs [2, offsets, N],
    indice_num_per_loc [offsets], num_act_out)."""
    return _ops.get_indice_pairs(
        indices, batch_size=batch_size, spatial_shape=list(spatial_shape), ksize=list(ksize), stride=list(stride),
        padding=list(padding), dilation=list(dilation), out_padding=list(out_padding), subm=int(subm),
        transpose=int(transpose),
    )  # fmt: skip


def indice_conv(
    features: Tensor,
    filters: Tensor,
    indice_pairs: Tensor,
    indice_num_per_loc: Tensor,
    num_act_out: Tensor,
    is_subm: bool = False,
) -> Tensor:
    """features [N, C], filters [K, kz, ky, kx, C], the lists of `get_indice_pairs` -> [O, K]; not differentiable."""
    return _ops.indice_conv(features, filters, indice_pairs, indice_num_per_loc, num_act_out, is_subm=int(is_subm))


# ---- errors ----------------------------------------------------------------------------------------


def _refusing_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function with a clear error for NumPy arrays, whose values PyTorch's own error prints."""

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        for i, value in enumerate((*args, *named.values())):
            if not isinstance(value, Tensor) and hasattr(value, "__array_interface__") and value.shape:
                names = [*list(signature(function).parameters)[: len(args)], *named]
                raise TypeError(
                    f"polyop.{function.__name__}: '{names[i]}': expected a torch.Tensor, got a NumPy array: "
                    f"pass torch.from_numpy({names[i]})"
                )
        return function(*args, **named)

    return call


globals().update({name: _refusing_arrays(globals()[name]) for name in __all__ if name != "node_domain"})
