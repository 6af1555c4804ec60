# SPDX-License-Identifier: Apache-2.0
"""Selects rows by flags with ONNX's Compress and pads them."""

from __future__ import annotations

import torch
from torch import Tensor

from polyop.formulas import Call


def formula(feat: Tensor, flags: Tensor, invalid: Tensor, P: int) -> Tensor:  # noqa: N803 - the nodes' name
    selected_rows = torch.nonzero(flags).squeeze(1)[:P]
    padding = invalid.expand(feat.shape[0], P - selected_rows.shape[0], -1)
    return torch.cat([feat[:, selected_rows], padding], 1)


def body(call: Call, *, P: int) -> str:  # noqa: N803 - the nodes' name
    del call
    return f"""
        is_set = Cast <to = 9> (flags)
        flagged = Compress <axis = 1> (feat, is_set)
        extents = Shape (feat)
        zero = Constant <value = int64[1] {{0}}> ()
        one = Constant <value = int64[1] {{1}}> ()
        two = Constant <value = int64[1] {{2}}> ()
        rows = Constant <value = int64[1] {{{P}}}> ()
        batch = Gather (extents, zero)
        channels = Gather (extents, two)
        shape = Concat <axis = 0> (batch, rows, channels)
        padding = Expand (invalid, shape)
        padded = Concat <axis = 1> (flagged, padding)
        selected = Slice (padded, zero, rows, one)
    """
