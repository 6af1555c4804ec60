# SPDX-License-Identifier: Apache-2.0
"""Text detection: expands the kernels of text lines over pixels."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.compat.mmcv_ext._registry import provides


@provides("contour_expand")
def contour_expand(
    kernel_mask: Tensor, internal_kernel_label: Tensor, min_kernel_area: int, kernel_num: int
) -> list[list[int]]:
    """PSENet: expands the labels of the smallest kernels over the larger kernels of kernel_mask [K, H, W], from the
    last but one to the first. Drops labels of fewer than min_kernel_area pixels. The first label to reach a pixel keeps
    it."""
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
    """PAN: adds adjacent pixels of the mask [H, W] to a kernel if their embedding [H, W, D] is close to the kernel's
    mean.

    Returns for each kernel: mean score, number of pixels, and the pixels x, y, x, y, … in row-major order.
    """
    label, scores, counts = torch.ops.polyop.pixel_group(
        score, mask != 0, embedding, kernel_label.int(), kernel_contour != 0, kernel_region_num=kernel_region_label,
        distance_threshold=distance_threshold,
    )  # fmt: skip
    pixels = label.nonzero()
    pixels = pixels[label[pixels[:, 0], pixels[:, 1]].argsort(stable=True)].flip(1)
    of_regions = pixels.split(counts.tolist())
    return [
        [mean, float(len(own)), *own.flatten().double().tolist()]
        for mean, own in zip(scores.tolist(), of_regions, strict=True)
    ]
