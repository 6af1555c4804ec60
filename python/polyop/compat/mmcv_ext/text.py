"""Text detection: kernels of text lines grown over pixels."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.compat.mmcv_ext._registry import provides


@provides("contour_expand")
def contour_expand(
    kernel_mask: Tensor, internal_kernel_label: Tensor, min_kernel_area: int, kernel_num: int
) -> list[list[int]]:
    """PSENet: labels of the smallest kernels, those of fewer than min_kernel_area pixels left out, grown over the next
    larger kernels of kernel_mask [K, H, W], from the last but one to the first; who comes first keeps a pixel."""
    grown = torch.ops.polyop.contour_expand(
        kernel_mask[:kernel_num] != 0, internal_kernel_label.int(), min_kernel_area=min_kernel_area
    )
    return grown.tolist()


@provides("pixel_group")
def pixel_group(
    score: Tensor,
    mask: Tensor,
    embedding: Tensor,
    kernel_label: Tensor,
    kernel_contour: Tensor,
    kernel_region_label: int,
    distance_threshold: float,
) -> list[list[float]]:
    """PAN: pixels of the mask [H, W] next to a kernel join it if their embedding [H, W, D] is near the kernel's mean.

    For each of kernel_region_label kernels: mean score, count, and its pixels x, y, x, y, … row by row.
    """
    label, scores, counts = torch.ops.polyop.pixel_group(
        score, mask != 0, embedding, kernel_label.int(), kernel_contour != 0, kernel_region_num=kernel_region_label,
        distance_threshold=distance_threshold,
    )  # fmt: skip
    places = label.nonzero()
    places = places[label[places[:, 0], places[:, 1]].argsort(stable=True)].flip(1)
    of_regions = places.split(counts.tolist())
    return [
        [mean, float(len(own)), *own.flatten().double().tolist()]
        for mean, own in zip(scores.tolist(), of_regions, strict=True)
    ]
