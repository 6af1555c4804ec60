"""2 * a + b."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from polyop.formulas import Call


def formula(a: Tensor, b: Tensor) -> Tensor:
    return 2 * a + b


def body(call: Call, **_: Any) -> str:
    """Standard operators broadcast as torch does, so that no rank need be known."""
    return """
        two = Constant <value = float {2}> ()
        twice = Mul (two, a)
        c = Add (twice, b)
    """
