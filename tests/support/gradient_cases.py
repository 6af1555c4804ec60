# SPDX-License-Identifier: Apache-2.0
"""Calls of the differentiable operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from polyop import formulas
from polyop._torch.operators import OPERATORS

DIFFERENTIABLE = {
    name: module.DIFFERENTIABLE
    for name in OPERATORS
    if (module := formulas.find(name)) is not None and hasattr(module, "DIFFERENTIABLE")
}

torch.manual_seed(0)


def rois(columns: int, extent: float = 6) -> torch.Tensor:
    rows = torch.rand(5, columns, dtype=torch.float64) * extent
    rows[:, 0] = torch.tensor([0.0, 1, 1, 0, 1])
    if columns == 5:
        rows[:, 3:] += rows[:, 1:3]
    rows[4, 1:3] -= 8  # partly outside
    return rows


COORS = torch.tensor([[0, 0, 2], [1, 0, 0], [0, 0, 2], [-1, 0, 0], [0, 0, 2], [1, 0, 0]])


def plain(*shape: int) -> torch.Tensor:
    return torch.rand(*shape)


Case = tuple[dict[str, Any], list[torch.Tensor]]
pooled = {"output_height": 2, "output_width": 3, "spatial_scale": 0.7}
pyramid = {"output_height": 2, "output_width": 3, "featmap_strides": [2.0, 4.0], "finest_scale": 4}
# A call of each operator that has a gradient: attributes and tensors.
CASES: dict[str, Case] = {
    "roi_align": ({**pooled, "sampling_ratio": 2}, [plain(2, 2, 6, 5), rois(5).float()]),
    "roi_align-by-extents": (pooled, [plain(2, 2, 6, 5), rois(5).float()]),
    "roi_align-no-boxes": (pooled, [plain(2, 2, 6, 5), plain(0, 5)]),
    "multi_level_roi_align": (
        {**pyramid, "sampling_ratio": 2}, [rois(5, 18).float(), plain(2, 2, 6, 5), plain(2, 2, 3, 2)]
    ),
    "multi_level_roi_align-max": (
        {**pyramid, "sampling_ratio": 2, "pool_mode": "max"}, [rois(5, 18).float(), plain(2, 2, 6, 5), plain(2, 2, 3, 2)]
    ),
    "multi_level_rotated_roi_align": (
        {**pyramid, "sampling_ratio": 2}, [rois(6, 18).float(), plain(2, 2, 6, 5), plain(2, 2, 3, 2)]
    ),
    "roi_align_rotated": ({**pooled, "sampling_ratio": 2}, [plain(2, 2, 6, 5), rois(6).float()]),
    "roi_align_rotated-by-extents": (pooled, [plain(2, 2, 6, 5), rois(6).float()]),
    "grid_sampler": ({}, [plain(2, 2, 4, 5), plain(2, 3, 3, 2)]),
    "softmax": ({"axis": 1}, [plain(2, 3, 4)]),
    "softmax-logarithm": ({"axis": -2, "log": 1}, [plain(2, 3, 4)]),
    "instance_norm": ({}, [plain(2, 3, 4, 5), plain(3), plain(3)]),
    "bicubic_interpolate": ({"scale_factor": [2.0, 0.625]}, [plain(2, 2, 4, 5)]),
    "bicubic_interpolate-aligned": ({"scale_factor": [1.7], "align_corners": 1}, [plain(2, 2, 4, 5)]),
    "cubic_resize": ({"exclude_outside": 1}, [plain(2, 2, 4, 5), torch.tensor([7, 3])]),
    "dynamic_resize": ({}, [plain(2, 2, 4, 5), torch.tensor([1, 1, 1.5, 2])]),
    "openvino_deform_conv2d": (
        {"strides": [2, 1], "pads": [1, 0, 0, 2]}, [plain(2, 4, 5, 6), plain(2, 12, 2, 7), plain(2, 4, 3, 2)]
    ),
    "dft": ({"dimensions": 2}, [plain(2, 3, 5, 2)]),
    "dft-of-real-numbers": ({"onesided": 1}, [plain(2, 6, 1)]),
    "dft-to-real-numbers": ({"onesided": 1, "inverse": 1, "odd": 1}, [plain(2, 4, 2)]),
    "onnx_deform_conv": (
        {"strides": [2, 1], "pads": [1, 0, 0, 2]},
        [plain(2, 4, 5, 6), plain(2, 4, 3, 2), plain(2, 12, 2, 7), plain(2), plain(2, 6, 2, 7)],
    ),
    "deform_conv2d": ({"stride": [2, 1]}, [plain(2, 4, 5, 6), plain(2, 12, 2, 5), plain(2, 4, 3, 2)]),
    "deform_conv2d-one-value": ({"stride": [2]}, [plain(2, 4, 5, 6), plain(2, 12, 2, 3), plain(2, 4, 3, 2)]),
    "modulated_deform_conv2d": (
        {}, [plain(1, 4, 3, 3), plain(1, 8, 2, 2), plain(1, 4, 2, 2), plain(2, 4, 2, 2), plain(2)]
    ),
    "corner_pool": ({"mode": "left"}, [plain(2, 2, 4, 3)]),
    "cdist": ({"p": 1.5}, [plain(2, 3, 4), plain(2, 5, 4)]),
    "cdist-condensed": ({"condensed": 1}, [plain(5, 3), plain(5, 3)]),
    "cummax": ({"dim": 1}, [plain(3, 4, 5)]),
    "cumulative": ({"axis": 1, "exclusive": 1}, [plain(3, 4, 5)]),
    "cumulative-products": ({"axis": 1, "mode": "prod", "reverse": 1}, [plain(3, 4, 5)]),
    "ms_deform_attn": (
        {},
        [plain(2, 26, 2, 3), torch.tensor([[4, 5], [2, 3]]), torch.tensor([0, 20]), plain(2, 3, 2, 2, 2, 2),
         plain(2, 3, 2, 2, 2)],
    ),
    "dcn_v3": (
        {"group": 2, "group_channels": 3}, [plain(1, 4, 5, 6), plain(1, 4, 5, 36), plain(1, 4, 5, 18)]
    ),
    "dcn_v4": ({"group": 2, "group_channels": 3}, [plain(1, 4, 5, 6), plain(1, 4, 5, 56)]),
    "carafe": ({"kernel_size": 3, "scale_factor": 2.0}, [plain(1, 4, 2, 3), plain(1, 9, 4, 6)]),
    "border_align": ({"pool_size": 3}, [plain(2, 8, 5, 6), plain(2, 3, 4)]),
    "deform_roi_pool": (
        {"pooled_height": 2, "pooled_width": 3}, [plain(2, 2, 6, 5), rois(5).float(), plain(5, 2, 2, 3)]
    ),
    "prroi_pool": ({"pooled_height": 2, "pooled_width": 3}, [plain(2, 2, 6, 5), rois(5).float()]),
    "prroi_pool-no-boxes": ({"pooled_height": 2, "pooled_width": 3}, [plain(2, 2, 6, 5), plain(0, 5)]),
    "roi_pool": (pooled, [plain(2, 2, 6, 5), rois(5).float()]),
    "roi_pool-not-rounded": ({**pooled, "rounded": False}, [plain(2, 2, 6, 5), rois(5).float()]),
    "roi_pool-no-boxes": (pooled, [plain(2, 2, 6, 5), plain(0, 5)]),
    "riroi_align_rotated": (
        {"pooled_height": 2, "pooled_width": 3, "num_samples": 2, "num_orientations": 2},
        [plain(2, 4, 6, 5), rois(6).float()],
    ),
    "riroi_align_rotated-no-boxes": ({"num_orientations": 2}, [plain(2, 4, 6, 5), plain(0, 6)]),
    "bezier_align": ({**pooled, "sampling_ratio": 2}, [plain(2, 2, 6, 5), rois(17).float()]),
    "bezier_align-by-extents": (pooled, [plain(2, 2, 6, 5), rois(17).float()]),
    "bezier_align-no-boxes": (pooled, [plain(2, 2, 6, 5), plain(0, 17)]),
    "active_rotated_filter": ({}, [plain(2, 3, 2, 3, 1), torch.randint(1, 7, (2, 3, 1, 4))]),
    "correlation": ({"kernel_size": [3], "padding": [1, 0]}, [plain(2, 3, 4, 5), plain(2, 3, 4, 5)]),
    "correlation_lookup": ({"radius": [2, 1]}, [plain(2, 3, 4, 5, 6), plain(2, 2, 3, 4) * 6]),
    "assign_score_withk": (
        {}, [plain(2, 3, 4, 2), plain(2, 5, 2, 6), plain(2, 5, 2, 6), torch.randint(-1, 6, (2, 3, 4))]
    ),
    "rotated_feature_align": ({"spatial_scale": 0.5, "points": 5}, [plain(2, 3, 4, 5), plain(2, 4, 5, 5)]),
    "chamfer_distance": ({}, [plain(2, 5, 2), plain(2, 4, 2)]),
    "diff_iou_rotated": ({}, [plain(2, 6, 5) + 0.5, plain(2, 6, 5) + 0.5]),
    "diff_iou_rotated-3d": ({"dimensions": 3}, [plain(2, 6, 7) + 0.5, plain(2, 6, 7) + 0.5]),
    "psa_mask": ({"mask_size": [3, 5]}, [plain(2, 15, 3, 4)]),
    "masked_conv2d": ({"padding": [1, 1]}, [plain(1, 2, 5, 4), plain(1, 5, 4), plain(3, 2, 3, 3), plain(3)]),
    "flash_deform_attn": (
        {"points": 2}, [plain(2, 26, 2, 3), torch.tensor([[4, 5], [2, 3]]), torch.tensor([0, 20]), plain(2, 3, 2, 12)]
    ),
    "ms_deform_attn_by_head": (
        {},
        [plain(2, 26, 2, 3), torch.tensor([[4, 5], [2, 3]]), torch.tensor([0, 20]), plain(2, 3, 2, 2, 2, 2),
         plain(2, 3, 2, 2, 2)],
    ),
    "ms_deform_attn_of_offsets": (
        {}, [plain(2, 26, 2, 3), torch.tensor([[4, 5], [2, 3]]), plain(2, 3, 1, 4), plain(2, 3, 2, 16), plain(2, 3, 2, 8)]
    ),
    "planar_grid_sampler": ({}, [plain(2, 2, 4, 5), plain(2, 2, 3, 3)]),
    "qkv_attention": ({}, [plain(2, 5, 8), plain(2, 6, 8), plain(2, 6, 7)]),
    "rotate": ({}, [plain(2, 4, 5), torch.tensor(30.0), torch.tensor([2.0, 1.5])]),
    "tensorrt_roi_align": ({**pooled, "sampling_ratio": 2}, [plain(2, 2, 6, 5), rois(5).float()[:, 1:], torch.tensor([0, 1, 1, 0, 1])]),
    "tensorrt_roi_align-max": (
        {**pooled, "mode": "max"}, [plain(2, 2, 6, 5), rois(5).float()[:, 1:], torch.tensor([0, 1, 1, 0, 1])]
    ),
    "bev_pool": (
        {"out_height": 2, "out_width": 3},
        [plain(1, 2, 2, 2), plain(1, 2, 2, 4), torch.tensor([0, 7, 3]), torch.tensor([0, 3, 1]), torch.tensor([5, 5, 2]),
         torch.tensor([0, 2]), torch.tensor([2, 1])],
    ),
    "bev_pool_volume": (
        {"out_height": 2, "out_width": 3, "output_z": 2},
        [plain(1, 2, 2, 2), plain(1, 2, 2, 4), torch.tensor([0, 7, 3]), torch.tensor([0, 3, 1]), torch.tensor([11, 11, 2]),
         torch.tensor([0, 2]), torch.tensor([2, 1])],
    ),
    "quick_cumsum": (
        {"batch_size": 2, "dimension": 1, "height": 2, "width": 3},
        [plain(3, 4), torch.tensor([[0, 1, 0, 0], [0, 1, 0, 0], [1, 2, 0, 1]]), torch.tensor([2, 1]), torch.tensor([0, 2])],
    ),
    "pillar_scatter": (
        {"dense_shape": [2, 3]}, [plain(2, 3, 4), torch.zeros(2, 3, 4, dtype=torch.int64), torch.tensor([2, 3])]
    ),
    "group_points": ({}, [plain(2, 3, 5), torch.randint(0, 5, (2, 4, 3))]),
    "gather_points": ({}, [plain(2, 3, 5), torch.randint(0, 5, (2, 4), dtype=torch.int32)]),
    "implicit_gemm": (
        {"act_type": "leaky_relu", "act_alpha": 0.5},
        [plain(5, 2), plain(3, 1, 3, 1, 2), torch.randint(-1, 5, (3, 4)), torch.zeros(4, 1).long(), torch.arange(4),
         plain(3)],
    ),
    "indice_conv": (
        {}, [plain(5, 2), plain(3, 1, 3, 1, 2), torch.randint(0, 5, (2, 3, 4)), torch.tensor([2, 4, 0]), torch.tensor(6)]
    ),
    "indice_conv-subm": (
        {"is_subm": True},
        [plain(5, 2), plain(3, 1, 3, 1, 2), torch.randint(0, 5, (2, 3, 4)), torch.tensor([2, 0, 0]), torch.tensor(5)],
    ),
    "roiaware_pool3d": ({"out_size": [2, 1, 3]}, [plain(3, 7), plain(20, 3), plain(20, 2)]),
    "three_interpolate": ({}, [plain(2, 3, 5), torch.randint(0, 5, (2, 4, 3)), plain(2, 4, 3)]),
    "dynamic_scatter": ({"reduce_type": "max"}, [plain(6, 3), COORS]),
    "selective_scan": (
        {"delta_softplus": True},
        [plain(2, 4, 5), plain(2, 4, 5), -plain(4, 3), plain(2, 2, 3, 5), plain(2, 2, 3, 5), plain(4), plain(2, 4, 5), plain(4),
         plain(2, 4, 3)],
    ),
    "selective_scan-one-step": (
        {},
        [plain(2, 4, 1), plain(2, 4, 1), -plain(4, 3), plain(2, 1, 3, 1), plain(2, 1, 3, 1), plain(4), plain(2, 4, 1),
         plain(4), plain(2, 4, 3)],
    ),
    "causal_conv1d": ({"activation": "silu"}, [plain(2, 3, 5), plain(3, 4), plain(3), plain(2, 3, 3)]),
    "causal_conv1d-two-taps": ({}, [plain(2, 3, 5), plain(3, 2), plain(3), plain(2, 3, 1)]),
    "neighborhood_attention": (
        {"kernel_size": [3], "dilation": [2, 1], "is_causal": [0, 1]},
        [plain(1, 7, 4, 2, 3), plain(1, 7, 4, 2, 3), plain(1, 7, 4, 2, 2)],
    ),
    "embedding_bag": ({}, [plain(6, 3), torch.tensor([1, 5, 2, 2, 0]), torch.tensor([0, 3, 3]), plain(5)]),
    "segment_csr": ({"reduce": "mean"}, [plain(7, 3), torch.tensor([1, 3, 3, 6])]),
}  # fmt: skip


SIZED_BY_VALUES = {
    "dynamic_scatter",
    "indice_conv",
    "indice_conv-subm",
    "cubic_resize",
    "dynamic_resize",
}  # the size of its outputs depends on data


def operator_of(name: str) -> str:
    return name.split("-")[0]


def call(name: str, tensors: Sequence[torch.Tensor]) -> Any:
    """Calls the operator of a case with these tensors. The last ones may be those of a variadic input."""
    operator = OPERATORS[operator_of(name)]
    return operator.overload(*operator.nest(tensors), **CASES[name][0])


def has_gradient(name: str) -> list[bool]:
    """Returns for each tensor of a case whether it has a gradient."""
    operator = OPERATORS[operator_of(name)]
    return [operator.input_of(i) in DIFFERENTIABLE[operator.name] for i in range(len(CASES[name][1]))]


def differentiable(name: str) -> list[int]:
    """Returns the indices of a case's tensors that have gradients."""
    return [i for i, has in enumerate(has_gradient(name)) if has]
