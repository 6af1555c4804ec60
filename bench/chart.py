"""The chart of a benchmark: how many times as long the best rival takes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

if TYPE_CHECKING:
    from harness import Row

COLOURS = ("#2b6cb0", "#dd6b20", "#38a169", "#805ad5")


def label_of(row: Row) -> str:
    """A star marks a rival whose time is a published one."""
    return f"{row.operator}: {row.title}" + (" *" if "elsewhere" in row.best_rival else "")


def draw(rows: list[Row], about: dict[str, object], path: Path) -> None:
    """Bars on a logarithmic axis, one a number of threads; rows without a rival are left out."""
    rows = [row for row in rows if row.ratio is not None]
    if not rows:
        return
    labels = list(dict.fromkeys(label_of(row) for row in rows))
    threads = sorted({row.threads for row in rows})
    height = 0.8 / len(threads)
    figure, axes = plt.subplots(figsize=(10, 1.2 + 0.42 * len(labels)), layout="constrained")
    for index, count in enumerate(threads):
        ratios = {label_of(row): row.ratio for row in rows if row.threads == count}
        places = np.arange(len(labels)) + (index - (len(threads) - 1) / 2) * height
        widths = [ratios.get(label, np.nan) for label in labels]
        bars = axes.barh(
            places, widths, height, color=COLOURS[index % len(COLOURS)], label=f"{count} thread{'s' * (count > 1)}"
        )
        axes.bar_label(bars, [f"{w:.1f}x" for w in widths], padding=3, fontsize=7)
    axes.axvline(1, color="#555", linewidth=1)
    axes.set_xscale("log")
    axes.set_xlim(min(0.5, *(row.ratio for row in rows)), max(row.ratio for row in rows) * 1.6)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_xlabel(
        "time of the best rival / time of polyop (median; right of 1 polyop is faster)\n"
        "* MMCV's or MMDeploy's own kernel, as published for another machine"
    )
    axes.set_ylim(len(labels) - 0.4, -0.6)
    figure.suptitle(
        f"polyop {about['polyop']} on {about['processor']}\nONNX Runtime {about['onnxruntime']}, torch {about['torch']}",
        fontsize=11,
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper right", frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
