# SPDX-License-Identifier: Apache-2.0
"""The chart of benchmark results, and the titles by which the charts group operators."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

if TYPE_CHECKING:
    from harness import Row

ROOT = Path(__file__).resolve().parent.parent
COLOURS = ("#2b6cb0", "#dd6b20", "#38a169", "#805ad5")

# The titles of the rooms of operators (folders of ops/), and of rows that are not an operator's.
TITLES = {
    "rois": "RoI pooling",
    "sampling": "Sampling",
    "resize": "Resizing",
    "boxes": "2-D boxes and polygons",
    "boxes3d": "3-D boxes",
    "deform": "Deformable convolution and attention",
    "attention": "Attention",
    "feature_maps": "Feature maps",
    "quantized": "Quantized",
    "sparse": "Sparse convolution",
    "points": "Points and their neighbours",
    "voxels": "Voxels",
    "bev": "Bird's-eye view",
    "text": "Text detection",
    "sequence": "Scans and signals",
    "sorting": "Sorting and searching",
    "scatter": "Gather and scatter",
    "linalg": "Linear algebra",
    "special": "Special functions",
    "example": "Element-wise (my_add)",
    "accelerator": "Standard ONNX nodes, accelerated",
    "whole model": "Whole models",
}
ROOMS = {folder.name: folder.parent.name for folder in ROOT.glob("ops/*/*/")} | {"cummin": "sequence"}
OTHER = "Other"


def title_of(operator: str) -> str:
    return TITLES.get(ROOMS.get(operator, operator), OTHER)


def by_title(operators: list[str]) -> dict[str, list[int]]:
    """Returns the indices of each room's operators by the room's title, in the order of `TITLES`."""
    indices: dict[str, list[int]] = {title: [] for title in [*TITLES.values(), OTHER]}
    for index, operator in enumerate(operators):
        indices[title_of(operator)].append(index)
    return {title: members for title, members in indices.items() if members}


def draw(rows: list[Row], about: dict[str, object], path: Path) -> None:
    """Draws one bar per room of operators on a logarithmic axis.

    A bar is the geometric mean of the ratios of the room's rows, a line spans the worst and the best of them. Rows
    without a rival are left out, and so are those whose best rival was measured on another machine.
    """
    rows = [row for row in rows if row.ratio is not None and "elsewhere" not in row.best_rival]
    if not rows:
        return
    groups = by_title([row.operator for row in rows])
    ratios = [np.array([rows[i].ratio for i in members]) for members in groups.values()]
    means, worst, best = ([f(r) for r in ratios] for f in (_geometric_mean, np.min, np.max))
    figure, axes = plt.subplots(figsize=(10, 1.6 + 0.34 * len(groups)), layout="constrained")
    positions = np.arange(len(groups))
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
    axes.set_yticks(positions, groups, fontsize=10)
    axes.set_ylim(len(groups) - 0.4, -0.6)
    ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if axes.get_xlim()[0] <= t <= max(best)]
    axes.set_xticks(ticks, [f"{t:g}x" for t in ticks])
    axes.minorticks_off()
    axes.set_xlabel("time of the best rival / time of polyop, medians (bar: geometric mean, line: worst to best row)")
    axes.set_title(
        f"polyop {about['polyop']} compared with the best rival, on {about['processor']}; "
        f"ONNX Runtime {about['onnxruntime']}, torch {about['torch']}",
        fontsize=11,
        loc="left",
        x=-0.3,
    )
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
