"""The chart of benchmark results, and the families of operators that the charts group by."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

if TYPE_CHECKING:
    from harness import Row

COLOURS = ("#2b6cb0", "#dd6b20", "#38a169", "#805ad5")

# Names of operators as the recorded results have them.
FAMILIES = {
    "Standard ONNX nodes, accelerated": "accelerator onnx_deform_conv onnx_nms onnx_roi_align openvino_roi_features openvino_deform_conv2d",
    "RoI pooling": (
        "roi_align roi_align_rotated multi_level_roi_align multi_level_rotated_roi_align tensorrt_roi_align riroi_align_rotated "
        "roi_pool prroi_pool deform_roi_pool bezier_align border_align"
    ),
    "Sampling and resizing": (
        "grid_sampler planar_grid_sampler dynamic_resize bicubic_interpolate cubic_resize rotate rotated_feature_align carafe"
    ),
    "Suppression of 2-D boxes": (
        "nms soft_nms nms_rotated nms_quadri nms_match batched_nms batched_rotated_nms efficient_nms select_and_pad"
    ),
    "2-D boxes and polygons": (
        "box_iou_rotated box_iou_quadri points_in_polygons min_area_polygons convex_giou convex_iou "
        "diff_iou_rotated diff_iou_rotated_sort_vertices grid_priors"
    ),
    "3-D boxes": (
        "decode_bbox3d nms3d boxes_iou3d roipoint_pool3d roiaware_pool3d points_in_boxes_all points_in_boxes_part"
    ),
    "Deformable and other convolutions": (
        "deform_conv2d modulated_deform_conv2d dcn_v3 dcn_v4 masked_conv2d correlation correlation_lookup active_rotated_filter"
    ),
    "Sparse convolution": "get_indice_pairs get_indice_pairs_implicit_gemm implicit_gemm indice_conv",
    "Attention": (
        "ms_deform_attn ms_deform_attn_by_head ms_deform_attn_of_offsets flash_deform_attn scaled_dot_product_attention "
        "qkv_attention neighborhood_attention inverse"
    ),
    "Scans, maxima and normalisation": (
        "corner_pool cummax cummin cumulative instance_norm psa_mask selective_scan causal_conv1d"
    ),
    "Gather and scatter": "scatter_nd gather_topk segment_csr embedding_bag custom_unique argsort",
    "Bird's-eye view": "bev_pool bev_pool_volume quick_cumsum pillar_scatter",
    "Points and their neighbours": (
        "knn knn_query three_nn ball_query grid_ball_query stacked_ball_query furthest_point_sampling "
        "furthest_point_sampling_with_dist chamfer_distance three_interpolate group_points gather_points assign_score_withk"
    ),
    "Voxels": "voxel_grid hard_voxelize dynamic_voxelize voxel_generator dynamic_scatter",
    "Text detection": "contour_expand pixel_group",
    "Element-wise (my_add)": "my_add",
}
OTHER = "Other"


def family_of(operator: str) -> str:
    if operator == "whole model":
        return "Whole models"
    return next((family for family, operators in FAMILIES.items() if operator in operators.split()), OTHER)


def by_family(operators: list[str]) -> dict[str, list[int]]:
    """Returns the indices of each family's operators, families in the order of `FAMILIES`."""
    indices: dict[str, list[int]] = {family: [] for family in [*FAMILIES, "Whole models", OTHER]}
    for index, operator in enumerate(operators):
        indices[family_of(operator)].append(index)
    return {family: members for family, members in indices.items() if members}


def draw(rows: list[Row], about: dict[str, object], path: Path) -> None:
    """Draws one bar per family of operators on a logarithmic axis.

    A bar is the geometric mean of the ratios of the family's rows, a line spans the worst and the best of them. Rows
    without a rival are left out, and so are those whose best rival was measured on another machine.
    """
    rows = [row for row in rows if row.ratio is not None and "elsewhere" not in row.best_rival]
    if not rows:
        return
    families = by_family([row.operator for row in rows])
    ratios = [np.array([rows[i].ratio for i in members]) for members in families.values()]
    means, worst, best = ([f(r) for r in ratios] for f in (_geometric_mean, np.min, np.max))
    figure, axes = plt.subplots(figsize=(10, 1.6 + 0.34 * len(families)), layout="constrained")
    positions = np.arange(len(families))
    # Bars grow from 1, where polyop is as fast as its best rival.
    axes.barh(positions, np.array(means) - 1, 0.62, left=1, color=COLOURS[0])
    axes.hlines(positions, worst, best, color="#1a202c", linewidth=1.4)
    axes.plot([*worst, *best], [*positions, *positions], "|", color="#1a202c", markersize=8)
    axes.axvline(1, color="#555", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(min(0.5, *worst) * 0.9, max(best) * 5)
    for position, values in zip(positions, zip(means, worst, best, ratios, strict=True), strict=True):
        mean, low, high, all_ratios = values
        text = f"{_times(mean)}  ({_times(low)} to {_times(high)}, {len(all_ratios)} rows)"
        axes.text(max(high, 1) * 1.12, position, text, va="center", fontsize=9)
    axes.set_yticks(positions, families, fontsize=10)
    axes.set_ylim(len(families) - 0.4, -0.6)
    ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if axes.get_xlim()[0] <= t <= max(best)]
    axes.set_xticks(ticks, [f"{t:g}x" for t in ticks])
    axes.minorticks_off()
    axes.set_xlabel("time of the best rival / time of polyop, medians (bar: geometric mean, line: worst to best row)")
    axes.set_title(
        f"polyop {about['polyop']} compared with the best rival, on {about['processor']}; "
        f"ONNX Runtime {about['onnxruntime']}, torch {about['torch']}",
        fontsize=11, loc="left", x=-0.3,
    )  # fmt: skip
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _geometric_mean(ratios: np.ndarray) -> float:
    return float(np.exp(np.log(ratios).mean()))


def _times(ratio: float) -> str:
    return f"{ratio:,.0f}x" if ratio >= 10 else f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"


def bars(axes: plt.Axes, widths: list[float], texts: list[str], index: int, count: int, label: str) -> None:
    """Draws bar number `index` of the `count` bars of each row."""
    height = 0.8 / count
    positions = np.arange(len(widths)) + (index - (count - 1) / 2) * height
    drawn = axes.barh(positions, widths, height, color=COLOURS[index % len(COLOURS)], label=label)
    axes.bar_label(drawn, texts, padding=3, fontsize=7)
