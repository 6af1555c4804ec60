# SPDX-License-Identifier: Apache-2.0
"""Draws a scene with its detections."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patheffects import withStroke

from polyop.attaching.precision import Detections
from scenes import CLASSES

COLOURS = ("#ffffff", "#ffd54a", "#5ef2ff", "#ff5ad0")
EDGE = [withStroke(linewidth=3, foreground="black")]


def draw(path: Path, panels: list[tuple[str, np.ndarray, Detections]], min_score: float = 0.3) -> None:
    """Writes an image with a panel for each title, scene [3, H, W] and its detections, labelled with their scores."""
    figure, axes = plt.subplots(1, len(panels), figsize=(3.2 * len(panels), 3.9), squeeze=False, layout="constrained")
    for axis, (title, image, found) in zip(axes[0], panels, strict=True):
        axis.imshow(image.transpose(1, 2, 0), interpolation="nearest", extent=(0, image.shape[2], image.shape[1], 0))
        for (x1, y1, x2, y2), label, score in zip(found.boxes, found.labels, found.scores, strict=True):
            if score < min_score:
                continue
            colour = COLOURS[label]
            axis.add_patch(plt.Rectangle((x1, y1), x2 - x1, y2 - y1, fill=False, ec=colour, lw=1.5, path_effects=EDGE))
            axis.text(x1 + 1, y2 - 1.5, f"{score:.2f}", fontsize=8, color=colour, path_effects=EDGE, clip_on=True)
        axis.set_title(title, fontsize=10)
        axis.set_axis_off()
    keys = [plt.Rectangle((0, 0), 1, 1, facecolor=colour, edgecolor="black") for colour in COLOURS]
    figure.legend(keys, CLASSES, loc="outside lower center", ncols=len(CLASSES), frameon=False, fontsize=10)
    figure.savefig(path, dpi=100)
    plt.close(figure)
    with Image.open(path) as image:
        image.convert("RGB").quantize(256).save(path, optimize=True)
