"""Text detection: kernels of text lines grown over pixels."""

from __future__ import annotations

from collections import deque

import torch
from torch import Tensor

from polyop.compat.mmcv_ext._registry import provides

_SIDES = ((-1, 0), (1, 0), (0, -1), (0, 1))


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


@provides()
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
    regions = kernel_region_label
    labels = kernel_label.long()
    height, width = labels.shape
    dimensions = embedding.shape[2]
    inside = labels > 0
    sums = embedding.new_zeros(regions, dimensions).index_add_(0, labels[inside], embedding[inside])
    counts = embedding.new_zeros(regions).index_add_(0, labels[inside], embedding.new_ones(int(inside.sum())))
    means = (sums / counts.clamp(min=1)[:, None]).tolist()
    vectors, allowed, grown = embedding.tolist(), mask.tolist(), labels.tolist()
    front = deque((y, x) for y, x in (inside & (kernel_contour != 0)).nonzero().tolist())
    limit = distance_threshold * distance_threshold
    while front:
        y, x = front.popleft()
        label = grown[y][x]
        for dy, dx in _SIDES:
            to_y, to_x = y + dy, x + dx
            if not (0 <= to_y < height and 0 <= to_x < width) or not allowed[to_y][to_x] or grown[to_y][to_x] > 0:
                continue
            pairs = zip(means[label], vectors[to_y][to_x], strict=True)
            if sum((a - b) ** 2 for a, b in pairs) < limit:
                grown[to_y][to_x] = label
                front.append((to_y, to_x))
    found: list[list[float]] = [[0.0, 0.0] for _ in range(regions)]
    scores = score.tolist()
    for y, row in enumerate(grown):
        for x, label in enumerate(row):
            if label > 0:
                found[label] += [float(x), float(y)]
                found[label][0] += scores[y][x]
                found[label][1] += 1
    for region in found:
        if region[1] > 0:
            region[0] /= region[1]
    return found
