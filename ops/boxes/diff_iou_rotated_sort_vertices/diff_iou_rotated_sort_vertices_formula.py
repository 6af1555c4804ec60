# SPDX-License-Identifier: Apache-2.0
"""Sorts vertices by angle: the rank of each of the 24 vertices, then the vertex of each rank."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(vertices: Tensor, mask: Tensor, num_valid: Tensor) -> Tensor:
    known = mask & torch.isfinite(vertices).all(3)
    x, y = torch.where(known[..., None], vertices, 0).double().unbind(3)
    x = torch.where((x == 0) & (y == 0), 1, x)
    lower = (y < 0) | ((y == 0) & (x < 0))
    index = torch.arange(24, device=mask.device)
    first = index[:, None] < index  # [j, i]: vertex j precedes vertex i if their angles are equal
    mine, other = (lambda t: t[..., :, None]), (lambda t: t[..., None, :])
    forth, back = mine(x) * other(y), other(x) * mine(y)
    precedes = (forth > back) | ((forth == back) & first)
    precedes = (other(lower) & ~mine(lower)) | ((mine(lower) == other(lower)) & precedes)
    # No torch.where: ONNX Runtime's Where does not support booleans.
    ahead = (mine(known) & (precedes | ~other(known))) | (~(mine(known) | other(known)) & first)
    rank = ahead.int().sum(2)
    position = torch.arange(9, device=mask.device)
    order = (rank[..., None, :] == position[:, None]).int().argmax(3)
    count = num_valid[..., None].clamp(max=8)
    filler = 8 + mask[..., 8:].int().argmin(2, keepdim=True)
    idx = torch.where(position < count, order, torch.where(position == count, order[..., :1], filler))
    return torch.where(count < 3, filler, idx).int()


def example(call: Call) -> list[Tensor]:
    return [torch.rand(2, 3, 24, 2), torch.rand(2, 3, 24) < 0.3, torch.full((2, 3), 6, dtype=torch.int32)]
