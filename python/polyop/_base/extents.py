# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of extents that several rooms share."""

from __future__ import annotations

import math
import struct
from ctypes import c_float
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def floor_scale(extent: int | torch.SymInt, scale: float) -> int | torch.SymInt:
    """Returns the extent that polyop's resizing gives: the floor of a float32 product, as in core/int_domain.h.

    Symbols are computed with in integers, like TensorRT's extents (adapters/tensorrt/exprs_domain.h).
    Requires: symbols with fractional scales are at most 2^20.
    """
    if scale == math.floor(scale):
        return extent * int(scale)
    if isinstance(extent, int):
        # The product is exact in double precision.
        return math.floor(c_float(c_float(extent).value * c_float(scale).value).value)
    import torch

    numerator, denominator = c_float(scale).value.as_integer_ratio()
    product: Any = extent * numerator
    unit: Any = 1  # unit: of the last of the product's first 24 bits
    for bit in range(numerator.bit_length() + 20 - 24):
        unit = unit + (torch.sym_min(1, product // (1 << 24 + bit)) << bit)
    rounded = product if isinstance(unit, int) else (2 * product + unit) // (2 * unit) * unit
    return rounded // denominator


def is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, math.isqrt(number) + 1))


def float32(value: float) -> float:
    return c_float(value).value


def next_float32(value: float, towards: float) -> float:
    """Returns the number of float32 that follows `value`, which is one itself and not 0."""
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    return struct.unpack("<f", struct.pack("<i", bits + (1 if (towards > value) == (value > 0) else -1)))[0]


def scale_for(inputs: int, outputs: int, scale: float) -> float | None:
    """Returns the scale next to the given one for which floor_scale turns `inputs` pixels into `outputs`, or None.

    PyTorch rounds coordinates to float32; this scale differs from PyTorch's by at most two roundings.
    """
    given = float32(scale)
    if floor_scale(inputs, given) != outputs:
        given = next_float32(given, math.inf if floor_scale(inputs, given) < outputs else 0)
    return given if floor_scale(inputs, given) == outputs else None
