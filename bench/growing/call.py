# SPDX-License-Identifier: Apache-2.0
"""A call of an operator whose size can be chosen, and inputs for cases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

MILLION = 1_000_000


@dataclass
class Call:
    """torch.ops.polyop.<operator>(*tensors, **attributes)."""

    operator: str
    tensors: Sequence[Tensor | Sequence[Tensor] | None]
    attributes: dict[str, object] = field(default_factory=dict)

    def __call__(self) -> Sequence[Tensor]:
        with torch.inference_mode():
            result = getattr(torch.ops.polyop, self.operator)(*self.tensors, **self.attributes)
        return [result] if isinstance(result, Tensor) else list(result)

    def inputs(self) -> list[Tensor]:
        several = [t if isinstance(t, Sequence) else [t] for t in self.tensors if t is not None]
        return [tensor for group in several for tensor in group]


@dataclass
class Growing:
    """An operator, the part of its input that grows, and its call of a size `n` between `min` and `max`."""

    operator: str
    what: str
    min: int
    max: int
    make: Callable[[int], Call]


def call(operator: str, *tensors: Tensor | Sequence[Tensor] | None, **attributes: object) -> Call:
    return Call(operator, tensors, attributes)


def uniform(*shape: int, low: float = 0, high: float = 1) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(1)) * (high - low) + low


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(2))


def integers(limit: int, *shape: int) -> Tensor:
    return torch.randint(limit, shape, generator=torch.Generator().manual_seed(3), dtype=torch.int32)


def scores(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(4))


def side_of(n: int) -> int:
    """Returns the side of a square of about n."""
    return max(1, round(n**0.5))
