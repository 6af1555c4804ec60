# SPDX-License-Identifier: Apache-2.0
"""The difference between two tensors, as the program computes it (cli/compare.h)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """An element is within it if |got - want| <= absolute + relative * |want|."""

    relative: float = 1e-4
    absolute: float = 1e-5


@dataclass(frozen=True)
class Difference:
    """max, mean: of |got - want|, where both are finite. scale: the largest finite |want|. differing: how many of
    `count` elements are outside of the tolerance. mismatch: a difference of kinds, types or shapes, or ""."""

    max: float = 0.0
    mean: float = 0.0
    scale: float = 0.0
    differing: int = 0
    count: int = 0
    infinite: bool = False  # one of the elements is NaN or infinite in one of the tensors alone
    mismatch: str = ""

    @property
    def ok(self) -> bool:
        return not self.mismatch and self.differing == 0

    def relative(self, absolute: float = 0.0) -> float:
        """Returns `max` relative to the scale: 0 if it is at most `absolute`, and infinite for what has no measure."""
        if self.mismatch or self.infinite:
            return float("inf")
        if self.max <= absolute:
            return 0.0
        return self.max / self.scale if self.scale else float("inf")


def difference(got: Any, want: Any, tolerance: Tolerance) -> Difference:
    """NaN equals NaN, and an infinity itself. Integers are compared exactly and must be equal; so must texts. Types of
    real numbers may differ."""
    if isinstance(got, list) and isinstance(want, list) and len(got) == len(want):
        parts = [difference(g, w, tolerance) for g, w in zip(got, want, strict=True)]
        return max(parts, key=lambda part: (not part.ok, part.relative()), default=Difference())
    if not isinstance(got, np.ndarray) or not isinstance(want, np.ndarray):
        same = type(got) is type(want) and got == want
        return Difference(mismatch="" if same else "expected a tensor, got another kind of value")
    if got.shape != want.shape or _is_real(got) != _is_real(want):
        expected, actual = (f"{a.dtype}{list(a.shape)}" for a in (want, got))
        return Difference(count=got.size, mismatch=f"expected {expected}, got {actual}")
    if not got.size:
        return Difference()
    if not _is_real(got):
        unequal = got != want
        if got.dtype.kind not in "biu":
            return Difference(0.0, 0.0, 0.0, int(unequal.sum()), got.size, bool(unequal.any()))
        apart = np.where(unequal, _apart(got, want), 0.0)
        scale = float(np.abs(want.astype(np.float64)).max())
        return Difference(float(apart.max()), float(apart.mean()), scale, int(unequal.sum()), got.size)
    g, w = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        equal = (g == w) | (np.isnan(g) & np.isnan(w))
        apart = np.where(equal, 0.0, np.abs(g - w))
        within = equal | ((apart <= tolerance.absolute + tolerance.relative * np.abs(w)) & np.isfinite(w))
    numbers = np.isfinite(apart)
    sizes = np.abs(w[np.isfinite(w)])
    return Difference(
        float(apart[numbers].max(initial=0.0)),
        float(apart[numbers].mean()) if numbers.any() else 0.0,
        float(sizes.max(initial=0.0)),
        int((~within).sum()),
        got.size,
        bool((~numbers).any()),
    )


def _is_real(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype.name in ("bfloat16",)


def _apart(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Returns |got - want| of integers, of which neighbours may be equal as doubles."""
    low, high = np.minimum(got, want), np.maximum(got, want)
    return (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
