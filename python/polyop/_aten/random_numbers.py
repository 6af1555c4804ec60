# SPDX-License-Identifier: Apache-2.0
"""Random numbers of distributions that ONNX lacks.

ONNX's RandomUniform draws a seed whenever the file runs: polyop's random_distribution is a function of it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from polyop._aten.table import decomposes

_BITS = 24
"""Random bits of a number that RandomUniform draws."""


def _drawn(distribution: str, a: Tensor, b: Tensor | None = None) -> Tensor:
    wide = torch.float64 if a.dtype == torch.float64 else torch.float32
    uniform = torch.rand([2], dtype=torch.float32, device=a.device)
    seed = (uniform * (1 << _BITS)).to(torch.int64)
    second = None if b is None else b.to(wide)
    drawn = torch.ops.polyop.random_distribution.default(seed, a.to(wide), second, distribution=distribution)
    return drawn.to(a.dtype)


@decomposes("aten::poisson", nodes=("random_distribution",))
def poisson(self: Tensor, generator: Any = None) -> Tensor:
    return _drawn("poisson", self)


@decomposes("aten::binomial", nodes=("random_distribution",))
def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    return _drawn("binomial", *torch.broadcast_tensors(count, prob))


@decomposes("aten::_standard_gamma", nodes=("random_distribution",))
def standard_gamma(self: Tensor, generator: Any = None) -> Tensor:
    return _drawn("gamma", self)


@decomposes("aten::_sample_dirichlet", nodes=("random_distribution",))
def sample_dirichlet(self: Tensor, generator: Any = None) -> Tensor:
    # In double precision, because gamma variates of small shapes underflow.
    parts = _drawn("gamma", self.to(torch.float64))
    return (parts / parts.sum(-1, keepdim=True)).to(self.dtype)
