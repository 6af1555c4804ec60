# SPDX-License-Identifier: Apache-2.0
"""2 * a + b."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from polyop.formulas import Call


def formula(a: Tensor, b: Tensor) -> Tensor:
    return 2 * a + b


def body(call: Call, **_: Any) -> str:
    """The ranks need not be known, because standard operators broadcast like torch."""
    return """
        two = Constant <value = float {2}> ()
        twice = Mul (two, a)
        c = Add (twice, b)
    """
