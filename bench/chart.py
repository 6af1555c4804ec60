"""The charts of benchmarks: how many times as long the best rival takes, and how time grows with size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt
import numpy as np

if TYPE_CHECKING:
    import whole_models
    from growth import Growth
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
    figure, axes = plt.subplots(figsize=(10, 1.2 + 0.42 * len(labels)), layout="constrained")
    for index, count in enumerate(threads):
        ratios = {label_of(row): row.ratio for row in rows if row.threads == count}
        widths = [ratios.get(label, np.nan) for label in labels]
        _bars(axes, widths, [f"{w:.1f}x" for w in widths], index, len(threads), f"{count} thread{'s' * (count > 1)}")
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


def _bars(axes: plt.Axes, widths: list[float], texts: list[str], index: int, count: int, label: str) -> None:
    """A bar for each row: that of number `index` of the `count` that share it."""
    height = 0.8 / count
    places = np.arange(len(widths)) + (index - (count - 1) / 2) * height
    bars = axes.barh(places, widths, height, color=COLOURS[index % len(COLOURS)], label=label)
    axes.bar_label(bars, texts, padding=3, fontsize=7)


GROWTHS_A_FIELD = 9


def draw_growth(rows: list[Growth], about: dict[str, object], path: Path) -> None:
    """Milliseconds over elements, both on logarithmic axes; some operators a field, with lines that rise as n and n^2."""
    groups = [rows[i : i + GROWTHS_A_FIELD] for i in range(0, len(rows), GROWTHS_A_FIELD)]
    across = min(3, len(groups))
    down = -(-len(groups) // across)
    figure, fields = plt.subplots(
        down, across, figsize=(6 * across, 5 * down), layout="constrained", sharex=True, sharey=True, squeeze=False
    )
    colours = plt.get_cmap("tab10").colors
    for axes, group in zip(fields.flat, groups, strict=False):
        for row, colour in zip(group, colours, strict=False):
            power = row.exponent("milliseconds")
            label = f"{row.operator}, {row.what}" + (f": n^{power:.2f}" if power is not None else "")
            sizes = [point.elements for point in row.points]
            times = [point.milliseconds for point in row.points]
            axes.plot(sizes, times, marker="o", markersize=3, color=colour, label=label)
        for power in (1, 2):
            axes.plot([1e4, 1e8], [0.1, 0.1 * 1e4**power], color="#aaa", linewidth=1, linestyle=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(1e-3, 1e4)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=6.5, loc="upper left", frameon=False)
    for axes in list(fields.flat)[len(groups) :]:
        axes.set_visible(False)
    figure.supxlabel(
        "elements of the outputs and of the inputs that grow; dotted: in proportion to n, and to its square"
    )
    figure.supylabel("milliseconds a call")
    figure.suptitle(f"polyop {about['polyop']} on {about['processor']}, one thread", fontsize=11)
    figure.savefig(path)
    plt.close(figure)


def draw_models(rows: list[whole_models.Row], about: dict[str, object], path: Path) -> None:
    """Bars of milliseconds, one an engine; a field for each number of threads."""
    engines = list(dict.fromkeys(engine for row in rows for engine in row.milliseconds))
    names = list(dict.fromkeys(row.name for row in rows))
    counts = sorted({row.threads for row in rows})
    figure, fields = plt.subplots(
        1, len(counts), figsize=(7.5 * len(counts), 1.5 + 0.75 * len(names)), layout="constrained", sharey=True,
        squeeze=False,
    )  # fmt: skip
    for axes, count in zip(fields.flat, counts, strict=True):
        times = {row.name: row.milliseconds for row in rows if row.threads == count}
        for index, engine in enumerate(engines):
            widths = [times.get(name, {}).get(engine, np.nan) for name in names]
            texts = ["" if np.isnan(w) else f"{w:,.0f}" for w in widths]
            _bars(axes, widths, texts, index, len(engines), engine)
        axes.set_xscale("log")
        axes.margins(x=0.15)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlabel(f"milliseconds, median, {count} thread{'s' * (count > 1)}")
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *fields.flat[0].get_legend_handles_labels(), loc="outside upper right", ncols=len(engines), frameon=False
    )
    figure.suptitle(f"polyop {about['polyop']} on {about['processor']}", fontsize=11, x=0.02, ha="left")
    figure.savefig(path, dpi=110)
    plt.close(figure)
