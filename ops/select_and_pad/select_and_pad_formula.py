"""Rows by flags, filled up: ONNX's Compress."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(feat: Tensor, flags: Tensor, invalid: Tensor, P: int) -> Tensor:  # noqa: N803 - the nodes' name
    picked = torch.nonzero(flags).squeeze(1)[:P]
    filling = invalid.expand(feat.shape[0], P - picked.shape[0], -1)
    return torch.cat([feat[:, picked], filling], 1)


def body(call: Call, *, P: int) -> str:  # noqa: N803 - the nodes' name
    del call
    return f"""
        is_set = Cast <to = 9> (flags)
        some = Compress <axis = 1> (feat, is_set)
        extents = Shape (feat)
        zero = Constant <value = int64[1] {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        two = Constant <value = int64[1] {{2}}> ()
        rows = Constant <value = int64[1] {{{P}}}> ()
        batch = Gather (extents, zero)
        channels = Gather (extents, two)
        shape = Concat <axis = 0> (batch, rows, channels)
        filling = Expand (invalid, shape)
        filled = Concat <axis = 1> (some, filling)
        selected = Slice (filled, zero, rows, one)
    """
