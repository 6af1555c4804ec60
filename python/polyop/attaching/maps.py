# SPDX-License-Identifier: Apache-2.0
"""Maps of classes, which segmentation models return: their regions, and how far two maps agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

SEGMENTATION = "segmentation"
"""The output of a file with an attached head: the class of each pixel."""


@dataclass
class MapAgreement:
    """Counts the pixels of each class in the maps of the reference and of the model, over all photos."""

    equal_pixels: list[float] = field(default_factory=list)
    """The share of the pixels of each photo that have one class in both."""
    _counts: dict[int, np.ndarray] = field(default_factory=dict)  # of both, the reference's, the model's

    def add(self, expected: np.ndarray, found: np.ndarray) -> None:
        """Takes two maps of one shape."""
        self.equal_pixels.append(float((expected == found).mean()) if expected.size else 1.0)
        for i, classes in enumerate((expected[expected == found], expected, found)):
            for label, count in zip(*np.unique(classes, return_counts=True), strict=True):
                self._counts.setdefault(int(label), np.zeros(3, np.int64))[i] += count

    @property
    def classes(self) -> int:
        return len(self._counts)

    @property
    def mean_iou(self) -> float:
        """The mean over the classes of the pixels of both maps, divided by those of either."""
        return float(np.mean([both / (a + b - both) for both, a, b in self._counts.values()])) if self._counts else 1.0


def bounds(mask: np.ndarray) -> np.ndarray:
    """Returns the corners of the smallest box around a mask with pixels."""
    rows, columns = (np.flatnonzero(mask.any(axis)) for axis in (1, 0))
    return np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1], np.float64)


def classes_of(labels: np.ndarray) -> Sequence[tuple[int, float]]:
    """Returns the classes of a map with their shares of the pixels, the largest first."""
    found, counts = np.unique(labels, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [(int(found[i]), float(counts[i] / labels.size)) for i in order]
