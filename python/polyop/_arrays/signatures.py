# SPDX-License-Identifier: Apache-2.0
"""What a Python caller writes where that differs from an operator's definition: the signatures of torchvision, MMCV and
other projects whose functions these are.

`FUNCTIONS` maps a function's name to its operator and its first parameters; the operator's other inputs and attributes
follow in the definition's order, required ones first. A parameter is `name`, `name<source` if the definition has
another name, `name=default` if it has another default, and `name!` if the caller must pass it. Two attributes for the
height and the width are one parameter already (`JOINED`). An operator that is not here has a function with its own
name. functions.py reads all of this for every framework.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

JOINED = (
    (re.compile(r"(output|pooled)_(height|width)"), "output_size"),
    (re.compile(r"kernel_[hw]"), "kernel_size"),
    (re.compile(r"stride_[hw]"), "stride"),
    (re.compile(r"pad_[hw]"), "padding"),
    (re.compile(r"dilation_[hw]"), "dilation"),
)
"""Attributes that are one parameter, a number or (height, width), and its name."""

REQUIRED = frozenset(("output_size",))
"""Parameters that a caller must pass, although nodes have a default."""

NUMBERS = frozenset(("axis", "dim", "offset"))
"""Integers from 0 to 1, or without a range, that are numbers. Other attributes of this kind are True or False."""


class Row(NamedTuple):
    operator: str
    parameters: str = ""
    presets: dict[str, Any] = {}  # noqa: RUF012 - not changed
    """Attributes that are no parameters, and their values."""
    outputs: int | None = None
    """The number of outputs that are returned, the first ones. None: all."""


FUNCTIONS = {
    "bev_pool": Row(
        "quick_cumsum",
        "x, geom_feats, interval_lengths, interval_starts, b<batch_size, d<dimension, h<height, w<width",
    ),
    "bezier_align": Row("bezier_align", "input, beziers<rois"),
    "boxes_overlap_bev": Row("boxes_iou3d", presets={"mode": "overlap_bev"}),
    "carafe": Row("carafe", "features, masks, kernel_size, group_size!, scale_factor"),
    "corner_pool": Row("corner_pool", "x<input, mode!"),
    "cummax": Row("cummax", presets={"mode": "max"}),
    "cummin": Row("cummax", presets={"mode": "min"}),
    "dcn_v3": Row("dcn_v3", "input, offset, mask, kernel_size!, stride!, padding!, dilation!, group, group_channels"),
    "dcn_v4": Row("dcn_v4", "input, offset_mask, kernel_size!, stride!, padding!, dilation!, group, group_channels"),
    "deform_roi_pool": Row("deform_roi_pool", "input, rois, offset!, output_size, spatial_scale, sampling_ratio=0"),
    "diff_iou_rotated_2d": Row("diff_iou_rotated", "box1<boxes_a, box2<boxes_b", {"dimensions": 2}),
    "diff_iou_rotated_3d": Row("diff_iou_rotated", "box3d1<boxes_a, box3d2<boxes_b", {"dimensions": 3}),
    "furthest_point_sample": Row("furthest_point_sampling", "points_xyz<xyz"),
    "furthest_point_sample_with_dist": Row("furthest_point_sampling_with_dist", "points_dist<dist"),
    "gather_points": Row("gather_points", "features, indices<idx"),
    "grid_sample": Row("grid_sampler", "input, grid, mode<interpolation_mode, padding_mode, align_corners"),
    "grouping_operation": Row("group_points", "features, indices<idx"),
    "implicit_gemm": Row(
        "implicit_gemm",
        "features, filters, pair_fwd, pair_mask, mask_argsort, bias, is_subm, act_type, act_alpha",
    ),
    "knn": Row("knn", "k, xyz, center_xyz<center, transposed"),
    "masked_conv2d": Row("masked_conv2d", "features, mask, weight, bias, padding, stride"),
    "ms_deform_attn": Row(
        "ms_deform_attn", "value, value_spatial_shapes<spatial_shapes, value_level_start_index<level_start_index"
    ),
    "ms_deform_attn_of_offsets": Row("ms_deform_attn_of_offsets", "value, value_spatial_shapes<spatial_shapes"),
    "neighborhood_attention": Row(
        "neighborhood_attention", "query, key, value, kernel_size, dilation, is_causal=False, scale=None"
    ),
    "nms3d_normal": Row("nms3d", presets={"normal": 1}),
    "pillar_scatter": Row("pillar_scatter", "features, coors<coords, output_shape<dense_shape, batch_size, num"),
    "psa_mask": Row("psa_mask", "input, psa_type!, mask_size"),
    "riroi_align_rotated": Row("riroi_align_rotated", "features<input, rois, out_size<output_size!"),
    "roi_align": Row(
        "roi_align", "input, boxes<rois, output_size, spatial_scale, sampling_ratio=-1, aligned=False, mode"
    ),
    "roi_pool": Row("roi_pool", "input, boxes<rois", outputs=1),
    "three_interpolate": Row("three_interpolate", "features, indices<idx, weight"),
}
