# SPDX-License-Identifier: Apache-2.0
"""Compares two results of the same computation, element by element, each relative to its own scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

# For results of polyop's kernels. Sums are evaluated in another order, and weights are rounded elsewhere.
_TOLERANCE = {"float32": 1e-4, "float64": 1e-4, "float16": 1e-2}
_MIN_SLICE = 4  # elements of a slice that has a scale; fewer may all be near zero by cancellation
ROUNDING = 4  # units, by which noise changes inputs
_NOISE = 8  # how far results may differ, in proportion to the change that rounded inputs cause


@dataclass(frozen=True)
class Difference:
    """largest: the largest absolute difference; NaN equals NaN. Infinite if shapes or types differ.
    why: the element that differs most of those that differ by more than allowed, or "".
    excess: the difference of that element.
    """

    largest: float = 0.0
    why: str = ""
    excess: float = 0.0


def compare(
    reference: Any, got: Any, tolerance: float | None = None, noisy: Any = None, is_rounded: bool = False
) -> Difference:
    """Compares tensors, sequences of tensors, or None.

    An element may differ by `tolerance` times its scale: the smallest, over the axes, of the largest magnitudes in the
    slices that contain it. A score in a table of boxes is thereby compared with the column of scores, and an element of
    a feature map with its channel. NaN, infinities, integers and the rest must be equal.

    tolerance: by the type if it is None.
    is_rounded: integers are results that were rounded, of which a tie may have been rounded the other way: one of
        100 may differ, by 1.
    noisy: the reference for inputs that differ by rounding. Elements that cancel may differ by as much as these do, but
    not by more than `tolerance` times the larger of 1 and the tensor's largest magnitude. Integers and truth values are
    rounded results if some of these differ from the reference, none by more than 1.
    """
    if isinstance(reference, list) and isinstance(got, list) and len(reference) == len(got):
        others = noisy if isinstance(noisy, list) and len(noisy) == len(got) else [None] * len(got)
        parts = [compare(r, g, tolerance, n, is_rounded) for r, g, n in zip(reference, got, others, strict=True)]
        worst = next((p for p in parts if p.why), Difference())
        return Difference(max((p.largest for p in parts), default=0.0), worst.why, worst.excess)
    if isinstance(reference, np.ndarray) and isinstance(got, np.ndarray):
        return _compare(_plain(reference), _plain(got), reference.dtype.name, tolerance, noisy, is_rounded)
    if reference is None and got is None:
        return Difference()
    return _different(f"differs in kind: expected {type(reference).__name__}, got {type(got).__name__}")


def with_rounding(feeds: Mapping[str, np.ndarray], units: int = ROUNDING) -> dict[str, np.ndarray]:
    """Returns the inputs with real numbers that differ by a few units of rounding."""
    rng = np.random.default_rng(0)

    def rounded(array: np.ndarray) -> np.ndarray:
        if array.dtype.kind != "f":
            return array
        step = units * np.finfo(array.dtype).eps
        return np.asarray(array * (1 + step * rng.choice([-1, 1], array.shape)), array.dtype)

    return {name: rounded(array) for name, array in feeds.items()}


def _plain(array: np.ndarray) -> np.ndarray:
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _compare(
    reference: np.ndarray, got: np.ndarray, kind: str, tolerance: float | None, noisy: Any, is_rounded: bool
) -> Difference:
    if reference.shape != got.shape or reference.dtype != got.dtype:
        expected, actual = (f"{a.dtype}{list(a.shape)}" for a in (reference, got))
        return _different(f"differs: expected {expected}, got {actual}")
    if reference.dtype.kind not in "fiub":
        return Difference() if np.array_equal(reference, got) else _different("differs")
    difference = _differences(reference, got)
    largest = float(difference.max(initial=0.0))
    if largest == 0:
        return Difference()
    if reference.dtype.kind != "f":
        is_rounded = is_rounded or _is_rounded(reference, noisy)
        if is_rounded and largest <= 1 and np.count_nonzero(difference) <= 1 + difference.size // 100:
            return Difference(largest)
        return _at(difference, difference > 0, reference, got)
    relative = _TOLERANCE.get(kind, 1e-2) if tolerance is None else tolerance
    allowed = relative * np.maximum(_scales(_magnitudes(reference)), np.finfo(reference.dtype).tiny)
    if (difference > allowed).any() and isinstance(noisy, np.ndarray) and noisy.shape == reference.shape:
        most = relative * max(1.0, float(_magnitudes(reference).max()))
        allowed = np.minimum(allowed + _NOISE * _scales(_magnitudes(_differences(reference, _plain(noisy)))), most)
    outside = difference > allowed
    return _at(difference, outside, reference, got) if outside.any() else Difference(largest)


def _is_rounded(reference: np.ndarray, noisy: Any) -> bool:
    """`reference` has integers or truth values."""
    if not isinstance(noisy, np.ndarray) or noisy.shape != reference.shape:
        return False
    return bool(_differences(reference, noisy).max(initial=0.0) == 1)


def _different(why: str) -> Difference:
    return Difference(np.inf, why, np.inf)


def _differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns absolute differences: 0 for equal infinities and for two NaN, infinite for one of them."""
    with np.errstate(all="ignore"):
        same = (a == b) | ((a != a) & (b != b))
        difference = np.where(same, 0.0, np.abs(a.astype(np.float64) - b.astype(np.float64)))
    return np.nan_to_num(difference, nan=np.inf, posinf=np.inf)


def _magnitudes(array: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(array), np.abs(array), array.dtype.type(0))


def _scales(magnitudes: np.ndarray) -> np.ndarray:
    """Returns the scale of each element, broadcastable to the shape."""
    result = magnitudes.max(keepdims=True).astype(np.float64)
    for axis, extent in enumerate(magnitudes.shape):
        if extent > 1 and magnitudes.size // extent >= _MIN_SLICE:
            others = tuple(a for a in range(magnitudes.ndim) if a != axis)
            result = np.minimum(result, magnitudes.max(axis=others, keepdims=True))
    return result


def _at(difference: np.ndarray, outside: np.ndarray, reference: np.ndarray, got: np.ndarray) -> Difference:
    """outside: the elements whose difference is not allowed."""
    at = np.unravel_index(int(np.where(outside, difference, -1.0).argmax()), difference.shape)
    where = f" at {[int(i) for i in at]}" if at else ""
    excess = float(difference[at])
    why = f"differs by {excess:.3g}{where}: expected {_number(reference[at])}, got {_number(got[at])}"
    return Difference(float(difference.max()), why, excess)


def _number(value: Any) -> str:
    return f"{float(value):.7g}" if value.dtype.kind == "f" else str(value)
